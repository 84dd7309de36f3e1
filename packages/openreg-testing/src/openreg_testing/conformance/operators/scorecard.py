# SPDX-License-Identifier: BSD-3-Clause
"""Sums of the reports, and the verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from rich.console import Console
from rich.table import Table

from ..manifest import Manifest
from .tasks import CHECKS, ON_DEMAND

_CODE = ("generated", "external")
FALLBACKS_SHOWN = 30  # the file written by --json has all


def seen(pattern: str, names: set[str]) -> bool:
    """Whether one of the names is meant."""
    return any(fnmatchcase(name, pattern) for name in names)


class Scorecard:
    """Of all reports of a run. `whole` has the checks of which nothing was left out."""

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
        return not report.get("fell_back") and not {"forward", "backward", "process"} & set(report["failures"])

    def tells_fallbacks(self) -> bool:
        """Whether the device does: else nobody knows what ran natively."""
        return all(report.get("tells_fallbacks", True) for report in self.reports)

    def native(self, dtype: str) -> int:
        return sum(self.is_native(report) for report in self.reports if report["dtype"] == dtype)

    def problems(self) -> list[str]:
        """Reasons why the run fails, one line each."""
        found = [
            f"{report['name']} {report['dtype']}: {check}: {reason}"
            for report in self.failed
            if not self.manifest.operator(report["name"]).fails
            for check, reason in report["failures"].items()
        ]
        listed = self.manifest.operators
        excepted = [name for name, known in listed.items() if known.fails]
        most = self.manifest.most_failing
        if most is not None and len(excepted) > most:
            found.append(f"{len(excepted)} entries are excepted; at most {most} may be")
        found += self.needless_differences()
        if self.complete:
            failed = {report["name"] for report in self.failed}
            found += [f"{name}: listed as an exception, and passes" for name in excepted if not seen(name, failed)]
            late = {report["name"] for report in self.reports if report.get("late_errors")}
            promised = [name for name, known in listed.items() if known.late]
            found += [f"{name}: listed as late, and fails at once" for name in promised if not seen(name, late)]
            if self.manifest.native and not self.tells_fallbacks():
                found.append("[expect] native: the device does not tell what falls back; it has no fallback_stats()")
                return found
            for dtype, least in self.manifest.native.items():
                if (native := self.native(dtype)) < least:
                    found.append(f"{native} entries run {dtype} natively; at least {least} have to")
        return found

    def needless_differences(self) -> list[str]:
        differing = {(report["name"], check) for report in self.reports for check in report.get("differences", ())}
        return [
            f"{name}: {check}: listed as a difference, and does not differ"
            for name, known in self.manifest.operators.items()
            for check in known.differs
            if self.is_whole(check)
            and not any(fnmatchcase(entry, name) and found == check for entry, found in differing)
        ]

    def is_whole(self, check: str) -> bool:
        """Whether a check, or the part of it that a name such as "layouts: result" means, was run on everything."""
        name = check.partition(":")[0]
        return name in self.whole or (self.complete and name not in ON_DEMAND)

    def dtypes(self) -> list[str]:
        return list(dict.fromkeys(report["dtype"] for report in self.reports))

    def row(self, dtype: str) -> tuple[int | None, ...]:
        """Entries run, passed, failed, excepted, native and fallen back of one dtype; None where nobody tells."""
        reports = [report for report in self.reports if report["dtype"] == dtype]
        failed = [report for report in reports if report["failures"]]
        excepted = sum(bool(self.manifest.operator(report["name"]).fails) for report in failed)
        sums = len(reports), len(reports) - len(failed), len(failed) - excepted, excepted
        if not self.tells_fallbacks():
            return (*sums, None, None)
        fell_back = sum(bool(report.get("fell_back")) for report in reports)
        return (*sums, self.native(dtype), fell_back)

    def as_dictionary(self) -> dict[str, Any]:
        names = ("run", "passed", "failed", "excepted", "native", "fell_back")
        return {
            "entries": self.entries,
            "scores": {dtype: dict(zip(names, self.row(dtype), strict=True)) for dtype in self.dtypes()},
            "fallbacks": dict(self.fallbacks().most_common()),
            "problems": self.problems(),
            "reports": self.reports,
        }

    def fallbacks(self) -> Counter[str]:
        """Entries that fall back, per operator."""
        return Counter(name for report in self.reports for name in report.get("fell_back", {}))

    def show(self, console: Console | None = None, with_problems: bool = True) -> None:
        console = console or Console()
        table = Table(title=f"{self.entries} entries of PyTorch's table of operators", title_justify="left")
        for name in ("dtype", "run", "passed", "failed", "excepted", "native", "fell back"):
            table.add_column(name, justify="left" if name == "dtype" else "right")
        for dtype in self.dtypes():
            table.add_row(dtype, *("?" if number is None else str(number) for number in self.row(dtype)))
        console.print(table)
        errors = sum(report.get("error_inputs", 0) for report in self.reports)
        late = sum(report.get("late_errors", 0) for report in self.reports)
        console.print(f"{errors} wrong inputs, {late} of them found by the device only")
        calls = sum(report.get("calls", 0) for report in self.reports)
        if calls:
            console.print(f"{calls} calls with one argument changed or without its memory")
        self._show_compiled(console)
        self._show_fallbacks(console)
        if not with_problems:
            return
        problems = self.problems()
        for line in problems:
            console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
        console.print(f"{len(problems)} problems" if problems else "all as it has to be", style="bold")

    def _show_compiled(self, console: Console) -> None:
        compiled = [report for report in self.reports if report.get("compiled")]
        if not compiled:
            return
        measured = [report for report in compiled if not report["compiled"]["cpu_fails"]]
        passed = sum(not report["failures"] for report in measured)
        console.print(f"{passed} of the {len(measured)} entries that pass compiled for the CPU pass here", end="; ")
        for side in ("ours", "cpu"):
            kernels, calls = (sum(report["compiled"][side][what] for report in measured) for what in _CODE)
            console.print(
                f"{side}: {kernels} kernels, {calls} calls of operators", end="; " if side == "ours" else "\n"
            )

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
