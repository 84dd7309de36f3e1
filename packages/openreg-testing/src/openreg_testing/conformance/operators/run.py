# SPDX-License-Identifier: BSD-3-Clause
"""Runs the checks of operators in a pool of worker processes and returns a scorecard, the counts and problems of a run.

An entry is an OpInfo of PyTorch's table of operators; it runs in several dtypes. The manifest is the file of the
backend's expected failures.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from .. import compiler_cache
from ..bring_up import Setup
from ..manifest import Manifest
from ..pool import FailedTask, Processes, WorkerPool
from .checks import CASE_BY_CASE, CHECKS, COMPILED, FLAGS, ON_DEMAND, PROCESS, last_case
from .scorecard import OperatorScores
from .tasks import TABLE, Entries, Examine

SECONDS_PER_ENTRY = 300.0
TOO_LONG = "took longer"  # the beginning of the reason that forks.py reports for a timeout
# The checks of a quick run.
QUICK = ("forward", "backward", "in-place", "overloads", "layouts", "writes", "sparse", "errors", "dtypes")


class TableError(Exception):
    """An error for a table of operators that cannot be used."""


def quick(setup: Setup, ops: Sequence[str] = (), **settings: Any) -> OperatorScores:
    """Runs the checks QUICK on every entry and returns the scorecard.

    Each entry runs in float32 or, if it does not list that, in its first dtype. `variant_samples` is the maximal number
    of samples of each check except "forward".
    """
    return run(setup, ("float32", "first"), ops, checks=QUICK, variant_samples=2, **settings)


def quick_flags(
    setup: Setup, table: str = TABLE, dtypes: Sequence[str] = ("float32", "int64", "first"), **settings: Any
) -> OperatorScores:
    """Runs the check "flags" with one sample (`variant_samples`) per entry and dtype, and returns the scorecard.

    A flag is a global setting of PyTorch that applies to the calls that are made while it is set (flags.py).
    """
    return run(setup, dtypes, checks=(FLAGS,), variant_samples=1, table=table, **settings)


def run(
    setup: Setup,
    dtypes: Sequence[str] = (),
    ops: Sequence[str] = (),
    checks: Sequence[str] = CHECKS,
    jobs: int | None = None,
    limit: float = SECONDS_PER_ENTRY,
    table: str = TABLE,
    progress: Callable[[int, int], object] | None = None,
    shard: tuple[int, int] = (1, 1),
    processes: Processes | None = None,
    **settings: Any,
) -> OperatorScores:
    """Runs the entries and dtypes that match and returns the scorecard. Empty selections match all.

    The dtype "first" is the first one of each entry that the manifest does not exclude. `shard` is (K, N) and selects
    the K-th of N parts. `settings` are arguments of examine(). Calls progress(done, total) after each task. Raises
    TableError if the table cannot be loaded, and ManifestError if the manifest lists an unknown entry. The checks
    ON_DEMAND run only if `checks` names them.
    """
    alone = (FLAGS, *ON_DEMAND)
    together = tuple(check for check in checks if check not in alone)
    parts = tuple(filter(None, (together, *((check,) for check in alone if check in checks))))
    reports: dict[tuple[str, str], dict[str, Any]] = {}
    names: list[str] = []
    order: list[str] = []
    manifest = setup.manifest
    for part in parts:
        with (
            _environment(part, manifest) as environment,
            WorkerPool(
                prepare=(setup, Entries(table)),
                jobs=jobs or os.cpu_count() or 1,
                limit=limit,
                environment=environment,
                processes=processes,
            ) as pool,
        ):
            listed = _listed(pool, table, manifest)
            order = listed["dtypes"]
            names = [name for name, _ in listed["entries"]]
            selected = {
                index: _selected_dtypes(own, manifest.operator(name).dtypes, dtypes)
                for index, (name, own) in enumerate(listed["entries"])
                if manifest.runs(name) and _matches(name, ops)
            }
            tasks = [
                Examine(
                    table, index, names[index], dtype, {"checks": part, "is_first_dtype": dtype == own[0], **settings}
                )
                for dtype in order
                for index, own in selected.items()
                if dtype in own
            ][shard[0] - 1 :: shard[1]]
            unfinished = []
            for done, (task, outcome) in enumerate(pool.run(tasks), 1):
                assert isinstance(task, Examine)
                report = _report(task, outcome)
                lost = report["failures"].get(PROCESS, "")
                if part[0] in CASE_BY_CASE and isinstance(outcome, FailedTask):
                    for partial_report in _around_lost_case(pool, task, outcome):
                        _add(reports, partial_report)
                elif lost and len(part) > 1 and not lost.startswith(TOO_LONG):  # repeating a hang would only cost time
                    unfinished.append((task, report))
                else:
                    _add(reports, report)
                if progress is not None:
                    progress(done, len(tasks))
            for report in _one_by_one(pool, unfinished):
                _add(reports, report)
    found = sorted(reports.values(), key=lambda report: (order.index(report["dtype"]), report["name"]))
    has_all_entries = not ops and shard == (1, 1) and table == TABLE
    # A check that runs on request is whole in the dtypes that were asked for: the check of compiled code has float32.
    whole = [check for check in checks if has_all_entries and (not dtypes or check == COMPILED)]
    return OperatorScores(found, len(names), whole, manifest)


def refuse_unusable(setup: Setup, table: str, processes: Processes) -> None:
    """Raises the errors of run() for a table that cannot be loaded, and for unknown entries of the manifest."""
    with WorkerPool(
        prepare=(setup, Entries(table)),
        jobs=1,
        limit=SECONDS_PER_ENTRY,
        environment=setup.manifest.environment,
        processes=processes,
    ) as pool:
        _listed(pool, table, setup.manifest)


def _listed(pool: WorkerPool, table: str, manifest: Manifest) -> dict[str, Any]:
    """Returns what Entries lists. Raises TableError or ManifestError, as run()."""
    listed = pool.ask(Entries(table))
    if isinstance(listed, FailedTask):
        reason = listed.reason.removeprefix("the process did not start: ")
        raise TableError(f"{table}: {reason}\n{listed.output}")
    found: dict[str, Any] = listed.value
    if table == TABLE:
        manifest.refuse_unknown("operators", [name for name, _ in found["entries"]])
    return found


@contextlib.contextmanager
def _environment(part: tuple[str, ...], manifest: Manifest) -> Iterator[dict[str, str]]:
    """Yields the environment variables of the processes that run these checks."""
    if part == (FLAGS,):  # these variables defer kernels until the host waits
        yield {**manifest.environment, **manifest.flags_environment}
    elif part == (COMPILED,):
        with compiler_cache.empty_cache() as settings:
            yield {**manifest.environment, **settings}
    else:
        yield dict(manifest.environment)


def _selected_dtypes(own: Sequence[str], runnable: Sequence[str], selection: Sequence[str]) -> list[str]:
    """Returns the dtypes in which an entry is run, in order.

    `own` are those that the table lists, `runnable` those that the manifest lists. `selection` are those of the run,
    where "first" is the first one that remains. An empty list of the last two allows all.
    """
    remaining = [dtype for dtype in own if not runnable or dtype in runnable]
    chosen = {*selection, *(remaining[:1] if "first" in selection else [])}
    return [dtype for dtype in remaining if not chosen or dtype in chosen]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    patterns = list(patterns)
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _report(task: Examine, outcome: Any) -> dict[str, Any]:
    """Returns the report of a task. If its process ended, the report contains that as its only failure."""
    if isinstance(outcome, FailedTask):
        return {"name": task.name, "dtype": task.dtype, "failures": {PROCESS: outcome.describe()}}
    report: dict[str, Any] = outcome.value
    return report


def _one_by_one(pool: WorkerPool, unfinished: Sequence[tuple[Examine, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Runs each check of the unfinished entries alone and yields reports.

    The process of these entries ended in one of the checks, so the others had no results.
    """
    tasks = [
        replace(task, settings={**task.settings, "checks": (check,)})
        for task, _ in unfinished
        for check in task.settings["checks"]
    ]
    ended: dict[tuple[str, str], dict[str, list[str]]] = {(task.name, task.dtype): {} for task, _ in unfinished}
    for task, outcome in pool.run(tasks):
        assert isinstance(task, Examine)
        report = _report(task, outcome)
        reason = report["failures"].pop(PROCESS, "")
        if reason:
            ended[task.name, task.dtype].setdefault(reason, []).extend(task.settings["checks"])
        yield report
    for _, report in unfinished:
        reasons = ended[report["name"], report["dtype"]]
        if reasons:  # if no check alone ended its process, the reason of the run with all checks stays
            text = "; ".join(f"{', '.join(checks)}: {reason}" for reason, checks in reasons.items())
            report["failures"][PROCESS] = text
        yield report


def _around_lost_case(pool: WorkerPool, task: Examine, lost: FailedTask) -> Iterator[dict[str, Any]]:
    """Runs the cases (numbered calls of a check) before and after the one that ended the process, and yields reports.

    The case itself is reported as a fault if it ended the process on the device, not on the CPU.
    """
    last = last_case(lost.output)
    begin, end = task.settings.get("cases", (0, None))
    if last is None or last[0] < begin:
        yield _report(task, lost)
        return
    number, where = last
    alone = (number, number + 1)
    if where != "cpu" and (begin, end) == alone:
        yield _report(task, FailedTask(f"case {number}: {lost.reason}", lost.output))
        return
    # A case that ended the process on the device is repeated alone in a new process, because the crash may be the late
    # effect of an earlier kernel of the CPU that wrote out of bounds.
    for part in ((begin, number), *([alone] if where != "cpu" else []), (number + 1, end)):
        if part[0] != part[1]:
            rest = replace(task, settings={**task.settings, "cases": part})
            outcome = pool.ask(rest, fresh=True)
            yield from (
                _around_lost_case(pool, rest, outcome) if isinstance(outcome, FailedTask) else [_report(rest, outcome)]
            )


def _add(reports: dict[tuple[str, str], dict[str, Any]], report: dict[str, Any]) -> None:
    """Adds a report, or merges it into an earlier report of the entry and dtype."""
    first = reports.setdefault((report["name"], report["dtype"]), report)
    if first is report:
        return
    for key, value in report.items():
        if key not in first:
            first[key] = value
        elif key in ("failures", "fell_back", "compiled"):
            first[key].update(value)
        elif key in ("flags", "differences", "exercised", "checks"):  # lists of names, each of which appears once
            first[key] = [*dict.fromkeys([*first[key], *value])]
        elif key in ("calls", "error_inputs", "asynchronous_errors", "seconds"):
            first[key] += value
        elif key in ("samples", "random_samples"):
            first[key] = max(first[key], value)
