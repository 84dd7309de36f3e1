# SPDX-License-Identifier: BSD-3-Clause
"""Measures the time of each step of a nox run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """The duration of one step of a session, and the processor time of it and its child processes, in seconds."""

    session: str
    name: str
    seconds: float
    worked: float


def processor_seconds() -> float:
    """Returns the processor time of this process and of the children that it waited for; on Windows, without these."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Stopwatch:
    """Collects the steps of every session of one run. Not thread-safe."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._session = ""
        self._begin = time.monotonic()
        self._idle_since = self._begin
        self._idle_worked = processor_seconds()

    @contextmanager
    def step(self, session: str, name: str) -> Iterator[None]:
        """A context that times one step.

        More than half a second since the last step is recorded as a step, too. Before the first step of a session, it
        is the time in which nox creates the environment.
        """
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

    def table(self) -> str:
        """Returns a table of the steps in their order, with the total; empty if there were none."""
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
        """Prints the table, and writes it to `path`.

        Sessions that run in parallel have a process each, so the name of the session becomes a part of `path`.
        """
        table = self.table()
        if not table:
            return
        if parallel:
            path = path.with_stem(f"{path.stem}-{self._steps[0].session}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{table}\n", encoding="utf-8")
        print(f"\nWhere the time went (also in {path}):\n{table}", flush=True)
