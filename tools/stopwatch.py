# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a nox run went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Stopwatch:
    """Collects the steps of every session of one run; one thread."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, str, float]] = []
        self._session = ""
        self._begin = time.monotonic()
        self._idle_since = self._begin

    @contextmanager
    def step(self, session: str, name: str) -> Iterator[None]:
        """Times one step. What passes before the first step of a session is nox making its environment."""
        begin = time.monotonic()
        if begin - self._idle_since > 0.5:
            between = "between steps" if session == self._session else "create environment"
            self._steps.append((session, between, begin - self._idle_since))
        self._session = session
        try:
            yield
        finally:
            self._idle_since = time.monotonic()
            self._steps.append((session, name, self._idle_since - begin))

    def table(self) -> str:
        """The steps in the order they were taken, and the total; empty if there were none."""
        if not self._steps:
            return ""
        width = max(len(session) for session, _, _ in self._steps)
        wide = max(len(name) for _, name, _ in self._steps)
        lines = [f"{'session':<{width}}  {'step':<{wide}}  seconds"]
        for session, name, seconds in self._steps:
            lines.append(f"{session:<{width}}  {name:<{wide}}  {seconds:7.1f}")
        total = time.monotonic() - self._begin
        lines.append(f"{'total':<{width}}  {'':<{wide}}  {total:7.1f}")
        return "\n".join(lines)

    def report(self, path: Path) -> None:
        """Prints the table and writes it to `path`."""
        table = self.table()
        if not table:
            return
        print(f"\nWhere the time went (also in {path}):\n{table}", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(table + "\n", encoding="utf-8")
