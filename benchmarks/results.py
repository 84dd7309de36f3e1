# SPDX-License-Identifier: BSD-3-Clause
"""What a run measured: its form in memory and in the file, and the statistics that all tables use.

`Families` is {family: {workload: {device: [one number per process]}}}. Numbers are seconds, those of the families in
`IN_BYTES` bytes. A workload that only one of the devices has lacks the other. No two families have a workload of the
same name.
"""

import json
import statistics
from pathlib import Path

DEVICES = ("openreg", "cpu")
IN_BYTES = {"peak memory"}
BUSY = 0.5  # threads that wanted a core before anything was measured; above it the numbers say little

Numbers = dict[str, list[float]]
Family = dict[str, Numbers]
Families = dict[str, Family]


def flat(families: Families) -> Family:
    """All workloads of all families by name."""
    found: Family = {}
    for workloads in families.values():
        twice = found.keys() & workloads.keys()
        if twice:
            raise ValueError(f"two families have a workload called {sorted(twice)[0]!r}: rename one")
        found.update(workloads)
    return found


def spread(values: list[float]) -> float:
    """Half the distance of the quartiles, 0 of a single number."""
    if len(values) < 2:
        return 0.0
    first, _, third = statistics.quantiles(values, n=4)
    return (third - first) / 2


def ratio(numbers: Numbers) -> float | None:
    """Median of openreg over median of the CPU; None where one is missing."""
    if not all(numbers.get(device) for device in DEVICES):
        return None
    openreg, cpu = (statistics.median(numbers[device]) for device in DEVICES)
    return openreg / cpu


def amount(value: float, family: str = "") -> str:
    """A number of that family with its unit."""
    if family in IN_BYTES:
        return f"{value / 2**20:,.1f} MiB"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:,.2f} {unit}"
    return f"{value * 1e9:,.0f} ns"


def median_and_spread(values: list[float] | None, family: str = "") -> str:
    """A cell of a table; empty if nothing was measured."""
    if not values:
        return ""
    middle = statistics.median(values)
    return f"{amount(middle, family)} ±{spread(values) / middle if middle else 0:4.0%}"


def save(path: Path, machine: dict, settings: dict, families: Families) -> None:
    """Writes every single number, and what the numbers depend on."""
    content = {"machine": machine, "settings": settings, "families": families}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def load(path: Path) -> dict:
    """What `save` wrote. Raises ValueError on any other file."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: no JSON ({error}); give a file that run.py --json wrote") from error
    if not isinstance(content, dict) or "families" not in content:
        raise ValueError(f"{path}: no results of run.py; give a file that run.py --json wrote")
    return content
