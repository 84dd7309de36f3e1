# SPDX-License-Identifier: BSD-3-Clause
"""The scorecard of a run: counts of the reports of all entries and dtypes, and the problems.

An entry is an OpInfo of PyTorch's table of operators. The manifest is the file of the backend's expected failures. A
*difference* is a failure of one check of an entry that the manifest lists with `differs`; it does not fail the run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from rich.console import Console
from rich.table import Table

from ..manifest import Manifest
from .checks import CHECKS, ON_DEMAND, PROCESS

_CODE = ("generated", "external")  # the counts of compiled code that are shown; see check_compiled.Code
FALLBACKS_SHOWN = 30  # lines of the table in the terminal; the file written by --json has all


def matches_any(pattern: str, names: set[str]) -> bool:
    """Returns True if a pattern matches one of the names."""
    return any(fnmatchcase(name, pattern) for name in names)


class OperatorScores:
    """The scorecard of a run.

    `reports` are results of EntryReport.as_dictionary(); `entries` is the number of entries in the table. `whole`
    contains the checks that ran on all entries and dtypes. The run is `complete` if these include all of CHECKS,
    which run by default.
    """

    def __init__(
        self,
        reports: list[dict[str, Any]],
        entries: int,
        whole: Collection[str] = (),
        manifest: Manifest | None = None,
    ) -> None:
        self.reports = reports
        self.entries = entries
        self.whole = frozenset(whole)
        self.complete = self.whole.issuperset(CHECKS)
        self.manifest = manifest if manifest is not None else Manifest()
        self.failed = [report for report in reports if report["failures"]]

    def is_native(self, report: Mapping[str, Any]) -> bool:
        """Returns True if an entry passed the checks "forward" and "backward" in its dtype without a fallback.

        The failure "process" means that the process ended or lost the device, so the checks may be incomplete.
        """
        return not report.get("fell_back") and not {"forward", "backward", PROCESS} & set(report["failures"])

    def counts_fallbacks(self) -> bool:
        """Returns True if the backend counts fallbacks; otherwise the number of native entries is unknown."""
        return all(report.get("counts_fallbacks", True) for report in self.reports)

    def native(self, dtype: str) -> int:
        """Returns the number of native entries of a dtype."""
        return sum(self.is_native(report) for report in self.reports if report["dtype"] == dtype)

    def problems(self) -> list[str]:
        """Returns the reasons why the run fails, one line each."""
        found = [
            f"{report['name']} {report['dtype']}: {check}: {reason}"
            for report in self.failed
            if not self.manifest.operator(report["name"]).fails
            for check, reason in report["failures"].items()
        ]
        listed = self.manifest.operators
        expected_failures = [name for name, known in listed.items() if known.fails]
        most = self.manifest.most_failing
        if most is not None and len(expected_failures) > most:
            found.append(
                f"{len(expected_failures)} entries are listed with `fails`; [expect] most_failing allows {most}"
            )
        found += self.needless_differences()
        if self.complete:
            failed = {report["name"] for report in self.failed}
            found += [
                f"{name}: listed with `fails`, but it passes; delete the entry"
                for name in expected_failures
                if not matches_any(name, failed)
            ]
            asynchronous = {report["name"] for report in self.reports if report.get("asynchronous_errors")}
            found += [
                f"{name}: listed with `late`, but it has no asynchronous error; delete the key"
                for name, known in listed.items()
                if known.allows_asynchronous_error and not matches_any(name, asynchronous)
            ]
            if self.manifest.native and not self.counts_fallbacks():
                found.append(
                    "[expect] native: the backend does not count fallbacks; add fallback_stats() to its module, or "
                    "delete the key"
                )
                return found
            for dtype, least in self.manifest.native.items():
                if (native := self.native(dtype)) < least:
                    found.append(f"{native} entries run {dtype} natively; [expect] native requires {least}")
        return found

    def needless_differences(self) -> list[str]:
        """Returns a problem for each difference in the manifest that does not occur."""
        differing = {(report["name"], check) for report in self.reports for check in report.get("differences", ())}
        return [
            f"{name}: {check}: listed with `differs`, but the check passes; delete the entry"
            for name, known in self.manifest.operators.items()
            for check in known.differs
            if self.is_whole(check)
            and not any(fnmatchcase(entry, name) and found == check for entry, found in differing)
        ]

    def is_whole(self, check: str) -> bool:
        """Returns True if a check, given as "layouts" or a part such as "layouts: result", ran on all entries."""
        name = check.partition(":")[0]
        return name in self.whole or (self.complete and name not in ON_DEMAND)

    def dtypes(self) -> list[str]:
        """Returns the dtypes of the reports."""
        return list(dict.fromkeys(report["dtype"] for report in self.reports))

    def row(self, dtype: str) -> tuple[int | None, ...]:
        """Returns the numbers of entries of one dtype: run, passed, failed, expected failures, native, fallen back.

        The last two are None if the backend does not count fallbacks.
        """
        reports = [report for report in self.reports if report["dtype"] == dtype]
        failed = [report for report in reports if report["failures"]]
        expected = sum(bool(self.manifest.operator(report["name"]).fails) for report in failed)
        counts = len(reports), len(reports) - len(failed), len(failed) - expected, expected
        if not self.counts_fallbacks():
            return (*counts, None, None)
        fell_back = sum(bool(report.get("fell_back")) for report in reports)
        return (*counts, self.native(dtype), fell_back)

    def as_dictionary(self) -> dict[str, Any]:
        """Returns everything as a dictionary for JSON."""
        names = ("run", "passed", "failed", "expected_failures", "native", "fell_back")
        return {
            "entries": self.entries,
            "scores": {dtype: dict(zip(names, self.row(dtype), strict=True)) for dtype in self.dtypes()},
            "fallbacks": dict(self.fallbacks().most_common()),
            "problems": self.problems(),
            "reports": self.reports,
        }

    def fallbacks(self) -> Counter[str]:
        """Returns for each operator the number of reports in which it fell back to the CPU.

        A report is that of one entry in one dtype.
        """
        return Counter(name for report in self.reports for name in report.get("fell_back", {}))

    def show(self, console: Console) -> None:
        """Prints the counts."""
        table = Table(title=f"{self.entries} entries of the table of operators", title_justify="left")
        for name in ("dtype", "run", "passed", "failed", "expected failures", "native", "fell back"):
            table.add_column(name, justify="left" if name == "dtype" else "right")
        for dtype in self.dtypes():
            table.add_row(dtype, *("?" if number is None else str(number) for number in self.row(dtype)))
        console.print(table)
        errors = sum(report.get("error_inputs", 0) for report in self.reports)
        asynchronous = sum(report.get("asynchronous_errors", 0) for report in self.reports)
        console.print(f"{errors} wrong inputs, {asynchronous} of them with an asynchronous error")
        # The calls of the checks "arguments" and "storages", which run on request only.
        calls = sum(report.get("calls", 0) for report in self.reports)
        if calls:
            console.print(f"{calls} calls with one argument changed or its storage freed")
        self._show_compiled(console)
        self._show_fallbacks(console)

    def _show_compiled(self, console: Console) -> None:
        compiled = [report for report in self.reports if report.get("compiled")]
        if not compiled:
            return
        measured = [report for report in compiled if not report["compiled"]["cpu_fails"]]
        passed = sum(not report["failures"] for report in measured)
        console.print(
            f"{passed} of the {len(measured)} entries that pass compiled for the CPU pass on the device", end="; "
        )
        for side, label, end in (("ours", "device", "; "), ("cpu", "CPU", "\n")):
            kernels, calls = (sum(report["compiled"][side][what] for report in measured) for what in _CODE)
            console.print(f"{label}: {kernels} kernels, {calls} calls of operators", end=end)

    def _show_fallbacks(self, console: Console) -> None:
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
