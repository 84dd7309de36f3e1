# SPDX-License-Identifier: BSD-3-Clause
"""A run of entries and dtypes in a pool of processes, and the scorecard of it."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..bring_up import Setup
from ..pool import Lost, Pool
from .scorecard import Scorecard
from .tasks import APART, CHECKS, TABLE, Entries, Examine

SECONDS_PER_ENTRY = 300.0
QUICK = ("forward", "backward", "in-place", "overloads", "layouts", "writes", "errors", "dtypes")


class TableError(Exception):
    """The table of operators cannot be used."""


def quick(setup: Setup, ops: Sequence[str] = (), **settings: Any) -> Scorecard:
    """Every entry in one dtype, float32 where it has it, with a few of its variants."""
    return run(setup, ("float32", "first"), ops, checks=QUICK, variant_samples=2, **settings)


def quick_flags(
    setup: Setup, table: str = TABLE, dtypes: Sequence[str] = ("float32", "int64", "first"), **settings: Any
) -> Scorecard:
    """The flags in short: one sample per entry, floating-point and integer."""
    return run(setup, dtypes, checks=(APART,), variant_samples=1, table=table, **settings)


def run(
    setup: Setup,
    dtypes: Sequence[str] = (),
    ops: Sequence[str] = (),
    checks: Sequence[str] = CHECKS,
    jobs: int | None = None,
    limit: float = SECONDS_PER_ENTRY,
    table: str = TABLE,
    progress: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> Scorecard:
    """A scorecard of the entries and dtypes that match; empty choices mean all. Settings are those of examine().

    The dtype "first" stands for the first one of each entry.
    """
    together = tuple(check for check in checks if check != APART)
    parts = tuple(filter(None, (together, (APART,) if APART in checks else ())))
    reports: dict[tuple[str, str], dict[str, Any]] = {}
    names: list[str] = []
    order: list[str] = []
    manifest = setup.manifest
    for part in parts:
        environment = {**manifest.environment, **(manifest.held_back if part == (APART,) else {})}
        with Pool((setup, Entries(table)), jobs or os.cpu_count() or 1, limit, environment) as pool:
            listed = pool.ask(Entries(table))
            if isinstance(listed, Lost):
                reason = listed.reason.removeprefix("the process did not start: ")
                raise TableError(f"{table}: {reason}\n{listed.output}")
            order = listed.value["dtypes"]
            names = [name for name, _ in listed.value["entries"]]
            if table == TABLE:
                manifest.refuse_unknown("operators", names)
            tasks = [
                Examine(table, index, name, dtype, {"checks": part, **settings})
                for dtype in order
                for index, (name, own) in enumerate(listed.value["entries"])
                if dtype in own
                and manifest.runs(name)
                and dtype in (manifest.operator(name).dtypes or order)
                and (not dtypes or dtype in dtypes or ("first" in dtypes and dtype == own[0]))
                and _matches(name, ops)
            ]
            for done, (task, outcome) in enumerate(pool.run(tasks), 1):
                assert isinstance(task, Examine)
                if isinstance(outcome, Lost):
                    failures = {"process": outcome.describe()}
                    _add(reports, {"name": task.name, "dtype": task.dtype, "failures": failures})
                else:
                    _add(reports, outcome.value)
                if progress is not None:
                    progress(done, len(tasks))
    found = sorted(reports.values(), key=lambda report: (order.index(report["dtype"]), report["name"]))
    complete = not dtypes and not ops and set(checks) == set(CHECKS) and table == TABLE
    return Scorecard(found, len(names), complete, manifest)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    patterns = list(patterns)
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _add(reports: dict[tuple[str, str], dict[str, Any]], report: dict[str, Any]) -> None:
    """Adds a report of the checks that run apart to that of the others."""
    first = reports.setdefault((report["name"], report["dtype"]), report)
    if first is not report:
        first["failures"].update(report["failures"])
        first["flags"] = report.get("flags", [])
