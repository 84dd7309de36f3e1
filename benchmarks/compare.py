# SPDX-License-Identifier: BSD-3-Clause
"""Compares two files of results, and shows which workloads became slower.

python benchmarks/compare.py OLD NEW
"""

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from results import IN_BYTES, Families, Numbers, load, median_and_spread, spread

SMALLEST = 0.05  # relative; a smaller change does not count, even if it exceeds the spreads


@dataclass(frozen=True)
class Change:
    """The numbers of a workload on openreg, before and now.

    `cpu` is the relative change of the CPU's median; None if the CPU has no numbers.
    """

    family: str
    name: str
    old: list[float]
    new: list[float]
    cpu: float | None

    @property
    def change(self) -> float:
        """Returns the relative change of the median; positive if it increased."""
        return relative(self.old, self.new)

    @property
    def label(self) -> str:
        """Returns "slower" or "faster", for memory "more" or "less"; empty if the change is small.

        A change is small unless it exceeds both spreads and 5 %.
        """
        difference = statistics.median(self.new) - statistics.median(self.old)
        if abs(difference) <= max(spread(self.old), spread(self.new)) or abs(self.change) <= SMALLEST:
            return ""
        words = ("more", "less") if self.family in IN_BYTES else ("slower", "faster")
        return words[0] if difference > 0 else words[1]

    @property
    def is_regression(self) -> bool:
        """Returns True if the workload became slower, or takes more memory."""
        return self.label in ("slower", "more")


def relative(old: list[float], new: list[float]) -> float:
    """Returns the relative change of the median; 0 if both are 0."""
    before, now = statistics.median(old), statistics.median(new)
    if before == 0:
        return 0.0 if now == 0 else float("inf")
    return now / before - 1


def change_of_cpu(old: Numbers, new: Numbers) -> float | None:
    """Returns the relative change of the CPU's median, which the backend does not cause; None if one is missing."""
    return relative(old["cpu"], new["cpu"]) if old.get("cpu") and new.get("cpu") else None


def changes(old: Families, new: Families) -> list[Change]:
    """Returns a change for each workload that both results have for openreg."""
    return [
        Change(family, name, before["openreg"], now["openreg"], change_of_cpu(before, now))
        for family, workloads in new.items()
        for name, now in workloads.items()
        if now.get("openreg") and (before := old.get(family, {}).get(name, {})).get("openreg")
    ]


def only_in(one: Families, other: Families) -> list[str]:
    """Returns the workloads that `one` has and `other` lacks."""
    return [name for family, workloads in one.items() for name in workloads if name not in other.get(family, {})]


def show(old: dict, new: dict) -> int:
    """Prints the changes between two loaded files. Returns the number of regressions."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=140)
    found = changes(old["families"], new["families"])
    table = Table(title="openreg, before and now; the change of the CPU is what the machine did meanwhile")
    for title in ("workload", "old", "new", "change", "CPU's change", ""):
        table.add_column(title, justify="left" if title == "workload" else "right")
    colors = {"slower": "bold red", "more": "bold red", "faster": "green", "less": "green", "": "none"}
    for item in found:
        cells = [median_and_spread(values, item.family) for values in (item.old, item.new)]
        cpu = "" if item.cpu is None else f"{item.cpu:+.0%}"
        label = item.label
        table.add_row(item.name, *cells, f"{item.change:+.0%}", cpu, f"[{colors[label]}]{label}[/]")
    console.print(table)
    for key in sorted(old["machine"].keys() | new["machine"].keys()):
        before, now = (content["machine"].get(key) for content in (old, new))
        if before != now:
            console.print(f"[bold]{key} differs:[/] {before} before, {now} now")
    missing = only_in(old["families"], new["families"])
    if missing:
        console.print(f"not measured now: {len(missing)} of the old workloads, {missing[0]!r} the first")
    regressions = sum(item.is_regression for item in found)
    console.print(f"{regressions} regressions among {len(found)} workloads")
    return regressions


def main() -> None:
    """Compares the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--fail-on-regression", action="store_true", help="exit status 1 if there is one")
    arguments = parser.parse_args()
    regressions = show(load(arguments.old), load(arguments.new))
    sys.exit(1 if regressions and arguments.fail_on_regression else 0)


if __name__ == "__main__":
    main()
