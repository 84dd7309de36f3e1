# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a nox run went, and whether it was more than the lanes' budgets allow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """What one step of a session took: seconds, and seconds of processors in the processes that it waited for."""

    session: str
    name: str
    seconds: float
    worked: float


def processor_seconds() -> float:
    """What this process and those that it waited for have computed; on Windows, this process alone."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Stopwatch:
    """Collects the steps of every session of one run; one thread.

    `budgets` are seconds, by session. A step that has the name of a budget counts for that one: the build of a wheel,
    whichever session needs it first.
    """

    def __init__(self, budgets: Mapping[str, int] | None = None) -> None:
        self._steps: list[Step] = []
        self._budgets = budgets or {}
        self._session = ""
        self._begin = time.monotonic()
        self._idle_since = self._begin
        self._idle_worked = processor_seconds()

    @contextmanager
    def step(self, session: str, name: str) -> Iterator[None]:
        """Times one step. What passes before the first step of a session is nox making its environment."""
        begin, worked = time.monotonic(), processor_seconds()
        if begin - self._idle_since > 0.5:
            between = "between steps" if session == self._session else "create environment"
            self._steps.append(Step(session, between, begin - self._idle_since, worked - self._idle_worked))
        self._session = session
        try:
            yield
        finally:
            self._idle_since, self._idle_worked = time.monotonic(), processor_seconds()
            self._steps.append(Step(session, name, self._idle_since - begin, self._idle_worked - worked))

    def taken(self) -> dict[str, tuple[float, float]]:
        """Seconds, and seconds of processors, of each session and of each step that has a budget of its own."""
        sums: dict[str, tuple[float, float]] = {}
        for step in self._steps:
            name = step.name if step.name in self._budgets else step.session
            seconds, worked = sums.get(name, (0.0, 0.0))
            sums[name] = (seconds + step.seconds, worked + step.worked)
        return sums

    def table(self) -> str:
        """The steps in the order they were taken, and the total; empty if there were none."""
        if not self._steps:
            return ""
        width = max(len(step.session) for step in self._steps)
        wide = max(len(step.name) for step in self._steps)
        total = Step("total", "", time.monotonic() - self._begin, sum(step.worked for step in self._steps))
        lines = (
            f"{step.session:<{width}}  {step.name:<{wide}}  {step.seconds:7.1f}  {step.worked:13.1f}"
            for step in [*self._steps, total]
        )
        return "\n".join([f"{'session':<{width}}  {'step':<{wide}}  seconds  of processors", *lines])

    def report(self, path: Path, *, parallel: bool = False) -> None:
        """Prints the table and which budgets were exceeded, and writes both to `path`.

        Sessions that run in `parallel` have a process each: `path` gets the name of this one's.
        """
        table = self.table()
        if not table:
            return
        if parallel:
            path = path.with_stem(f"{path.stem}-{self._steps[0].session}")
        path.parent.mkdir(parents=True, exist_ok=True)
        print(f"\nWhere the time went (also in {path}):\n{table}", flush=True)
        over = [
            f"{name} took {seconds:.0f} s, and its budget is {allowed} s (processors worked {worked:.0f} s for it)"
            for name, (seconds, worked) in self.taken().items()
            if (allowed := self._budgets.get(name)) is not None and seconds > allowed
        ]
        path.write_text("\n".join([table, *over]) + "\n", encoding="utf-8")
        if over:
            heading = "OVER BUDGET, which fails nothing; on a quiet machine make it shorter, or declare more"
            print("\n".join(["", f"{heading} (tools/budgets.py):", *over]), flush=True)
        if os.environ.get("GITHUB_ACTIONS") == "true":  # its summary shows annotations
            for line in over:
                print(f"::warning title=over budget::{line}", flush=True)
