# SPDX-License-Identifier: BSD-3-Clause
"""Sums of the reports, and the verdict."""

from collections import Counter, defaultdict

from rich.console import Console
from rich.table import Table

from .exceptions import DIFFERENCES, EXCEPTIONS, LATE, MOST_EXCEPTIONS

FALLBACKS_SHOWN = 30  # the file written by --json has all
NATIVE_FLOAT32 = 600  # entries that have to run forward and backward without falling back


class Scorecard:
    """Of all reports of a run; a complete run is one that nothing was left out of."""

    def __init__(self, reports, entries, complete=False):
        self.reports = reports
        self.entries = entries
        self.complete = complete
        self.failed = [report for report in reports if report["failures"]]

    def is_native(self, report):
        return not report.get("fell_back") and not {"forward", "backward", "process"} & set(report["failures"])

    def native(self, dtype):
        return sum(self.is_native(report) for report in self.reports if report["dtype"] == dtype)

    def problems(self):
        """Reasons why the run fails, one line each."""
        found = [
            f"{report['name']} {report['dtype']}: {check}: {reason}"
            for report in self.failed
            if report["name"] not in EXCEPTIONS
            for check, reason in report["failures"].items()
        ]
        if len(EXCEPTIONS) > MOST_EXCEPTIONS:
            found.append(f"{len(EXCEPTIONS)} entries are excepted; at most {MOST_EXCEPTIONS} may be")
        if self.complete:
            failed = {report["name"] for report in self.failed}
            found += [f"{name}: listed as an exception, and passes" for name in EXCEPTIONS if name not in failed]
            late = {report["name"] for report in self.reports if report.get("late_errors")}
            found += [f"{name}: listed as late, and fails at once" for name in LATE if name not in late]
            found += self.needless_differences()
            native = self.native("float32")
            if native < NATIVE_FLOAT32:
                found.append(f"{native} entries run float32 natively; at least {NATIVE_FLOAT32} have to")
        return found

    def needless_differences(self):
        seen = {(report["name"], check) for report in self.reports for check in report.get("differences", ())}
        return [
            f"{name}: {check}: listed as a difference, and does not differ"
            for name, checks in DIFFERENCES.items()
            for check in checks
            if (name, check) not in seen
        ]

    def dtypes(self):
        return list(dict.fromkeys(report["dtype"] for report in self.reports))

    def row(self, dtype):
        """Entries run, passed, failed, excepted, native and fallen back of one dtype."""
        reports = [report for report in self.reports if report["dtype"] == dtype]
        failed = [report for report in reports if report["failures"]]
        excepted = sum(report["name"] in EXCEPTIONS for report in failed)
        native = self.native(dtype)
        fell_back = sum(bool(report.get("fell_back")) for report in reports)
        return len(reports), len(reports) - len(failed), len(failed) - excepted, excepted, native, fell_back

    def as_dictionary(self):
        names = ("run", "passed", "failed", "excepted", "native", "fell_back")
        return {
            "entries": self.entries,
            "scores": {dtype: dict(zip(names, self.row(dtype), strict=True)) for dtype in self.dtypes()},
            "fallbacks": dict(self.fallbacks().most_common()),
            "problems": self.problems(),
            "reports": self.reports,
        }

    def fallbacks(self):
        """Entries that fall back, per operator."""
        return Counter(name for report in self.reports for name in report.get("fell_back", {}))

    def show(self, console=None):
        console = console or Console()
        table = Table(title=f"{self.entries} entries of PyTorch's table of operators", title_justify="left")
        for name in ("dtype", "run", "passed", "failed", "excepted", "native", "fell back"):
            table.add_column(name, justify="left" if name == "dtype" else "right")
        for dtype in self.dtypes():
            table.add_row(dtype, *(str(number) for number in self.row(dtype)))
        console.print(table)
        errors = sum(report.get("error_inputs", 0) for report in self.reports)
        late = sum(report.get("late_errors", 0) for report in self.reports)
        console.print(f"{errors} wrong inputs, {late} of them found by the device only")
        self._show_fallbacks(console)
        problems = self.problems()
        for line in problems:
            console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
        console.print(f"{len(problems)} problems" if problems else "all as it has to be", style="bold")

    def _show_fallbacks(self, console):
        dtypes = defaultdict(set)
        for report in self.reports:
            for name in report.get("fell_back", {}):
                dtypes[name].add(report["dtype"])
        if not dtypes:
            return
        table = Table(title=f"{len(dtypes)} operators fell back; the most frequent", title_justify="left")
        for name in ("operator", "runs", "dtypes"):
            table.add_column(name)
        for name, count in self.fallbacks().most_common(FALLBACKS_SHOWN):
            table.add_row(name, str(count), ", ".join(sorted(dtypes[name])))
        console.print(table)
