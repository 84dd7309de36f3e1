# SPDX-License-Identifier: BSD-3-Clause
"""Defines the form of results in memory and in the file, and the statistics that all tables use.

A workload is one thing that is timed on both devices, and a family is a group of workloads. `Families` is
{family: {workload: {device: [one number per process]}}}. The numbers are seconds; those of the families in `IN_BYTES`
are bytes. A workload that only one device has lacks the other one. No two families have a workload of the same name.
"""

import json
import statistics
from pathlib import Path

DEVICES = ("openreg", "cpu")
IN_BYTES = {"peak memory"}
BUSY = 0.5  # load average before a measurement, above which the numbers are not reliable

Numbers = dict[str, list[float]]
Family = dict[str, Numbers]
Families = dict[str, Family]


def flat(families: Families) -> Family:
    """Returns the workloads of all families by name. Raises ValueError if two have the same name."""
    found: Family = {}
    for workloads in families.values():
        twice = found.keys() & workloads.keys()
        if twice:
            raise ValueError(f"two families have a workload called {sorted(twice)[0]!r}: rename one")
        found.update(workloads)
    return found


def spread(values: list[float]) -> float:
    """Returns half the distance between the quartiles; 0 for a single number."""
    if len(values) < 2:
        return 0.0
    first, _, third = statistics.quantiles(values, n=4)
    return (third - first) / 2


def ratio(numbers: Numbers) -> float | None:
    """Returns the median of openreg divided by that of the CPU; None if one is missing, or the CPU's is 0."""
    if not all(numbers.get(device) for device in DEVICES):
        return None
    openreg, cpu = (statistics.median(numbers[device]) for device in DEVICES)
    return openreg / cpu if cpu else None


def amount(value: float, family: str = "") -> str:
    """Returns a number of a family as text, with its unit."""
    if family in IN_BYTES:
        return f"{value / 2**20:,.1f} MiB"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:,.2f} {unit}"
    return f"{value * 1e9:,.0f} ns"


def median_and_spread(values: list[float] | None, family: str = "") -> str:
    """Returns the text of a cell of a table; empty if nothing was measured."""
    if not values:
        return ""
    middle = statistics.median(values)
    return f"{amount(middle, family)} ±{spread(values) / middle if middle else 0:4.0%}"


def save(path: Path, machine: dict, settings: dict, families: Families) -> None:
    """Writes every single number, and the machine and settings on which the numbers depend."""
    content = {"machine": machine, "settings": settings, "families": families}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def load(path: Path) -> dict:
    """Returns the content of a file that `save` wrote. Raises ValueError for any other file."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: no JSON ({error}); give a file that run.py --json wrote") from error
    if not isinstance(content, dict) or "families" not in content:
        raise ValueError(f"{path}: no results of run.py; give a file that run.py --json wrote")
    return content
