# SPDX-License-Identifier: BSD-3-Clause
"""Processes that share the work. One that crashes or takes too long costs its task, and is replaced in milliseconds.

A task is an object with a method ``run()`` that gives what can be pickled. A process that was started and has run the
preparing tasks, which import what is needed and touch no device, forks another one that runs the others. Where that is
not possible, because a backend touches its device when it is imported, say, it runs them itself and is started again.

A process that forks has run nothing but preparing tasks, so the next pool can go on with it (``Processes``).
"""

from __future__ import annotations

import queue
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .. import forks

_FRAME = re.compile(r'\s+File "(.+)", line (\d+) in (\S+)')  # as faulthandler writes it
START_LIMIT = 300.0  # seconds until a process has imported what it needs
# Processes share the cores; a process with a team of threads for each of them would only be slower.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
SERVED_BY = "openreg_testing.conformance.pool:serve"


class Task(Protocol):
    """What a worker does."""

    def run(self) -> Any:
        """What it gives."""


@dataclass(frozen=True)
class Answer:
    """What a task gave; `spent` says that the process is of no more use."""

    value: Any
    spent: bool = False


@dataclass(frozen=True)
class Lost:
    """Why a task gave nothing, and the last lines that its process wrote."""

    reason: str
    output: str = ""

    def describe(self) -> str:
        """In one line: the reason, what the process said last, and of a crash the innermost line of Python."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        fatal = next((index for index, line in enumerate(lines) if line.startswith("Fatal")), None)
        if fatal is None:
            return ": ".join([self.reason, *lines[-1:]])
        frame = next(filter(None, map(_FRAME.match, lines[fatal:])), None)
        where = f", in {frame[3]} ({frame[1]}:{frame[2]})" if frame else ""
        return f"{self.reason}: {lines[fatal]}{where}"


@dataclass(frozen=True)
class Prepare:
    """The first request to a process, and again the first one of each pool that goes on with it."""

    path: tuple[str, ...]  # where the asking process finds modules
    tasks: tuple[Task, ...]

    def run(self) -> Answer | Lost:
        """(what the first task gave, whether the process forks)."""
        sys.path[:] = self.path
        outcomes = []
        for task in self.tasks:
            outcome = attempt(task)
            if isinstance(outcome, Lost):
                return outcome
            outcomes.append(outcome)
        _Host.begin()
        return Answer((outcomes[0].value, _Host.server is not None))


@dataclass(frozen=True)
class Limited:
    """Any other request: a task, how many seconds it may take, and whether it needs a fork that has run no other."""

    task: Task
    limit: float
    fresh: bool

    def run(self) -> Answer | Lost:
        """What it gave."""
        return _Host.ask(self.task, self.limit, self.fresh)


def serve(request: Prepare | Limited) -> Answer | Lost:
    """What a started process does with a request."""
    return request.run()


def attempt(task: Task) -> Answer | Lost:
    """What the task gives; an exception is told, and the process goes on."""
    try:
        value = task.run()
    except Exception as error:
        traceback.print_exc()
        first = str(error).strip().splitlines()[:1]
        return Lost(": ".join([type(error).__name__, *first]), traceback.format_exc())
    return value if isinstance(value, (Answer, Lost)) else Answer(value)


class _Host:
    """This process, as one that others are forked from."""

    server: forks.ForkServer | None = None
    worker: forks.Worker | None = None

    @classmethod
    def begin(cls) -> None:
        """Forks from now on, if that is possible."""
        if cls.server is not None:
            cls.server.close()
            cls.server = cls.worker = None
        if forks.can_fork() is None:
            cls.server = forks.ForkServer(attempt)

    @classmethod
    def ask(cls, task: Task, limit: float, fresh: bool) -> Answer | Lost:
        """What the task gives, in a fork that is kept for the next one where that is possible."""
        if cls.server is None:
            return attempt(task)
        if fresh and cls.worker is not None:
            cls.worker.end()
            cls.worker = None
        if cls.worker is None:
            cls.worker = cls.server.worker()
        found = cls.worker.ask(task, limit)
        outcome = Lost(found.reason, found.output) if isinstance(found, forks.Lost) else found.value
        assert isinstance(outcome, (Answer, Lost))
        if isinstance(found, forks.Lost) or (isinstance(outcome, Answer) and outcome.spent):
            cls.worker.end()
            cls.worker = None
            return Answer(outcome.value) if isinstance(outcome, Answer) else outcome
        return outcome


@dataclass(frozen=True)
class _Process:
    """A process that was started and is prepared."""

    worker: forks.Worker
    first: Any  # what the first of the preparing tasks gave
    forks: bool


class Processes:
    """Started processes that pools hand on, because importing torch takes seconds. Thread-safe."""

    def __init__(self) -> None:
        self._server = forks.SpawnServer(SERVED_BY)
        self._lock = threading.Lock()
        self._free: dict[tuple[tuple[str, str], ...], list[forks.Worker]] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, environment: Mapping[str, str]) -> forks.Worker:
        """One that was given back, or a new one, with these environment variables besides those of this process."""
        with self._lock:
            free = self._free.get(_key(environment))
            if free:
                return free.pop()
        return self._server.worker(environment)

    def give_back(self, environment: Mapping[str, str], worker: forks.Worker) -> None:
        """Keeps one that was taken for this environment. It must have run nothing but preparing tasks."""
        with self._lock:
            self._free.setdefault(_key(environment), []).append(worker)

    def close(self) -> None:
        """Ends all processes, whoever has them."""
        self._server.close()


def _key(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(environment.items()))


class Pool:
    """Runs tasks in `jobs` processes, each of which runs those of `prepare` first; a task may take `limit` seconds.

    Where `processes` are given, the pool takes its own from them, those of the same `environment`, and gives back those
    that can be used again; else they end with the pool.
    """

    def __init__(
        self,
        prepare: Sequence[Task],
        jobs: int,
        limit: float,
        environment: Mapping[str, str] | None = None,
        *,
        processes: Processes | None = None,
    ) -> None:
        self.prepare = tuple(prepare)
        self.jobs = jobs
        self.limit = limit
        self.environment = {**ONE_THREAD, **(environment or {})}
        self.processes = processes or Processes()
        self.owns_processes = processes is None
        self.spare: queue.SimpleQueue[_Process] = queue.SimpleQueue()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the processes back, or ends them."""
        if self.owns_processes:
            self.processes.close()
            return
        while not self.spare.empty():
            process = self.spare.get()
            if process.forks:
                self.processes.give_back(self.environment, process.worker)
            else:
                process.worker.end()

    def probe(self) -> Answer | Lost:
        """What the first of the preparing tasks gives."""
        process = self._start()
        if isinstance(process, Lost):
            return process
        self.spare.put(process)
        return Answer(process.first)

    def ask(self, task: Task, *, fresh: bool = False) -> Answer | Lost:
        """The outcome of one task, in a process that is kept for the next one where that is possible.

        With ``fresh``, in one that has run no other task, where processes can be forked.
        """
        try:
            process: _Process | Lost = self.spare.get_nowait()
        except queue.Empty:
            process = self._start()
        if isinstance(process, Lost):
            return Lost(f"the process did not start: {process.reason}", process.output)
        # One that forks gives up by itself, and keeps what it has imported.
        patience = self.limit + START_LIMIT if process.forks else self.limit
        found = process.worker.ask(Limited(task, self.limit, fresh), patience)
        outcome = Lost(found.reason, found.output) if isinstance(found, forks.Lost) else found.value
        assert isinstance(outcome, (Answer, Lost))
        if isinstance(found, forks.Lost) or (isinstance(outcome, Answer) and outcome.spent):
            process.worker.end()
        else:
            self.spare.put(process)
        return outcome

    def _start(self) -> _Process | Lost:
        worker = self.processes.take(self.environment)
        found = worker.ask(Prepare(tuple(sys.path), self.prepare), START_LIMIT)
        outcome = Lost(found.reason, found.output) if isinstance(found, forks.Lost) else found.value
        if isinstance(outcome, Lost):
            worker.end()
            return outcome
        first, forking = outcome.value
        return _Process(worker, first, forking)

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer | Lost]]:
        """Yields every task with its outcome, in the order in which they end."""
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[Task, Answer | Lost]] = queue.SimpleQueue()
        count = 0
        for task in tasks:
            waiting.put(task)
            count += 1

        def work() -> None:
            while True:
                try:
                    task = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    outcome = self.ask(task)
                except Exception as error:  # else the one who waits for it would wait for ever
                    outcome = Lost(f"the pool itself: {type(error).__name__}: {error}")
                done.put((task, outcome))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(self.jobs, count))]
        for thread in threads:
            thread.start()
        for _ in range(count):
            yield done.get()
        for thread in threads:
            thread.join()
