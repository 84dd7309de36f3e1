# SPDX-License-Identifier: BSD-3-Clause
"""A pool of worker processes for tasks that may crash or hang. The pool replaces the process of a task that does.

A task, here, is a picklable object with a method ``run()`` whose result can be pickled. A started process runs the
*preparing tasks* of the pool, which import modules and use no device. Then it forks a second process, which runs the
other tasks. A crash of that one costs milliseconds, because another one is forked. Forking is impossible if, for
example, a backend uses its device when it is imported. Then the started process runs the tasks itself, and a crash
costs a new start.

A process that forks has run only preparing tasks, so the next pool can reuse it (``Processes``).
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

from ..workers import forks

_FRAME = re.compile(r'\s+File "(.+)", line (\d+) in (\S+)')  # as faulthandler writes it
START_LIMIT = 300.0  # seconds for a process to start and run the preparing tasks
# The processes share the cores, so more threads in each of them would only slow them down.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
SERVED_BY = "openreg_testing.conformance.pool:serve"  # the function that a started process calls for each request


class WorkerTask(Protocol):
    """A picklable object that a worker process runs."""

    def run(self) -> Any:
        """Runs in the worker process. Returns a value that can be pickled, or a CompletedTask or FailedTask."""


@dataclass(frozen=True)
class CompletedTask:
    """The value that a task returned."""

    value: Any
    process_unusable: bool = False  # True: the process must be replaced, because it can no longer use the device


@dataclass(frozen=True)
class FailedTask:
    """The reason why a task returned no value, and the last lines of its process's output."""

    reason: str
    output: str = ""

    def describe(self) -> str:
        """Returns one line: the reason, the last line of output and, for a crash, the innermost Python frame."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        fatal = next((index for index, line in enumerate(lines) if line.startswith("Fatal")), None)
        if fatal is None:
            return ": ".join([self.reason, *lines[-1:]])
        frame = next(filter(None, map(_FRAME.match, lines[fatal:])), None)
        where = f", in {frame[3]} ({frame[1]}:{frame[2]})" if frame else ""
        return f"{self.reason}: {lines[fatal]}{where}"


@dataclass(frozen=True)
class Prepare:
    """The first request to a process, which each pool that reuses the process repeats."""

    path: tuple[str, ...]  # sys.path of the process that sends the request
    tasks: tuple[WorkerTask, ...]

    def run(self) -> CompletedTask | FailedTask:
        """Runs the preparing tasks, up to the first that fails, and returns that one as a FailedTask.

        If none fails, the value is (value of the first task, True if this process forks the others).
        """
        sys.path[:] = self.path
        outcomes = []
        for task in self.tasks:
            outcome = attempt(task)
            if isinstance(outcome, FailedTask):
                return outcome
            outcomes.append(outcome)
        _ForkingHost.begin()
        return CompletedTask((outcomes[0].value, _ForkingHost.server is not None))


@dataclass(frozen=True)
class RunRequest:
    """A request to a started process: to run a task within `limit` seconds; with `fresh`, in a new fork."""

    task: WorkerTask
    limit: float
    fresh: bool

    def run(self) -> CompletedTask | FailedTask:
        """Runs the task in a fork if the process forks, otherwise in the process itself."""
        return _ForkingHost.run(self.task, self.limit, self.fresh)


def serve(request: Prepare | RunRequest) -> CompletedTask | FailedTask:
    """Handles a request in a started process."""
    return request.run()


def attempt(task: WorkerTask) -> CompletedTask | FailedTask:
    """Runs a task. An exception is printed and returned as a FailedTask, and the process continues."""
    try:
        value = task.run()
    except Exception as error:
        traceback.print_exc()
        first = str(error).strip().splitlines()[:1]
        return FailedTask(": ".join([type(error).__name__, *first]), traceback.format_exc())
    return value if isinstance(value, (CompletedTask, FailedTask)) else CompletedTask(value)


class _ForkingHost:
    """The fork server of this started process, and its current fork. Both are None unless this process forks."""

    server: forks.ForkServer | None = None
    worker: forks.Worker | None = None

    @classmethod
    def begin(cls) -> None:
        """Starts a fork server if this process can fork. Ends the previous one."""
        if cls.server is not None:
            cls.server.close()
            cls.server = cls.worker = None
        if forks.can_fork() is None:
            cls.server = forks.ForkServer(attempt)

    @classmethod
    def run(cls, task: WorkerTask, limit: float, fresh: bool) -> CompletedTask | FailedTask:
        """Runs a task in a fork, which is kept for the next task unless it must be replaced.

        Without a fork server the task runs in this process, and `limit` and `fresh` have no effect.
        """
        if cls.server is None:
            return attempt(task)
        if fresh and cls.worker is not None:
            cls.worker.end()
            cls.worker = None
        if cls.worker is None:
            cls.worker = cls.server.worker()
        found = cls.worker.ask(task, limit)
        outcome = FailedTask(found.reason, found.output) if isinstance(found, forks.Lost) else found.value
        assert isinstance(outcome, (CompletedTask, FailedTask))
        if isinstance(found, forks.Lost) or (isinstance(outcome, CompletedTask) and outcome.process_unusable):
            cls.worker.end()
            cls.worker = None
            return CompletedTask(outcome.value) if isinstance(outcome, CompletedTask) else outcome
        return outcome


@dataclass(frozen=True)
class _PreparedProcess:
    """A started process that has run the preparing tasks."""

    worker: forks.Worker
    first: Any  # the value of the first preparing task
    forks: bool  # True if it runs other tasks in forks, and stays reusable


class Processes:
    """Started processes that pools reuse, because importing torch takes seconds. Thread-safe."""

    def __init__(self) -> None:
        self._server = forks.SpawnServer(SERVED_BY)
        self._lock = threading.Lock()
        self._free: dict[tuple[tuple[str, str], ...], list[forks.Worker]] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, environment: Mapping[str, str]) -> forks.Worker:
        """Returns a free process, or starts one, with these environment variables added to those of this process."""
        with self._lock:
            free = self._free.get(_key(environment))
            if free:
                return free.pop()
        return self._server.worker(environment)

    def give_back(self, environment: Mapping[str, str], worker: forks.Worker) -> None:
        """Keeps a process that was taken for this environment. It must have run only preparing tasks."""
        with self._lock:
            self._free.setdefault(_key(environment), []).append(worker)

    def close(self) -> None:
        """Ends all processes, including those that are in use."""
        self._server.close()


def _key(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(environment.items()))


class WorkerPool:
    """A pool of `jobs` processes, each of which first runs the tasks of `prepare`.

    A task times out after `limit` seconds. With `processes`, the pool takes processes of its `environment` from them
    and returns those that can be reused. Otherwise the processes end with the pool.
    """

    def __init__(
        self,
        prepare: Sequence[WorkerTask],
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
        self.spare: queue.SimpleQueue[_PreparedProcess] = queue.SimpleQueue()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Returns the processes to `processes`, or ends them."""
        if self.owns_processes:
            self.processes.close()
            return
        while not self.spare.empty():
            process = self.spare.get()
            if process.forks:
                self.processes.give_back(self.environment, process.worker)
            else:
                process.worker.end()

    def probe(self) -> CompletedTask | FailedTask:
        """Prepares a process and returns the value of its first preparing task."""
        process = self._start()
        if isinstance(process, FailedTask):
            return process
        self.spare.put(process)
        return CompletedTask(process.first)

    def ask(self, task: WorkerTask, *, fresh: bool = False) -> CompletedTask | FailedTask:
        """Runs one task and returns its result, in a process that is kept for the next task unless it must be replaced.

        With ``fresh``, the process has run no other task, provided that processes can be forked.
        """
        try:
            process: _PreparedProcess | FailedTask = self.spare.get_nowait()
        except queue.Empty:
            process = self._start()
        if isinstance(process, FailedTask):
            return FailedTask(f"the process did not start: {process.reason}", process.output)
        # A process that forks enforces the timeout on its fork and survives; it may need longer to start that fork.
        timeout = self.limit + START_LIMIT if process.forks else self.limit
        found = process.worker.ask(RunRequest(task, self.limit, fresh), timeout)
        outcome = FailedTask(found.reason, found.output) if isinstance(found, forks.Lost) else found.value
        assert isinstance(outcome, (CompletedTask, FailedTask))
        if isinstance(found, forks.Lost) or (isinstance(outcome, CompletedTask) and outcome.process_unusable):
            process.worker.end()
        else:
            self.spare.put(process)
        return outcome

    def _start(self) -> _PreparedProcess | FailedTask:
        """Starts or reuses a process and runs the preparing tasks in it."""
        worker = self.processes.take(self.environment)
        found = worker.ask(Prepare(tuple(sys.path), self.prepare), START_LIMIT)
        outcome = FailedTask(found.reason, found.output) if isinstance(found, forks.Lost) else found.value
        if isinstance(outcome, FailedTask):
            worker.end()
            return outcome
        first, forking = outcome.value
        return _PreparedProcess(worker, first, forking)

    def run(self, tasks: Iterable[WorkerTask]) -> Iterator[tuple[WorkerTask, CompletedTask | FailedTask]]:
        """Yields every task with its result, in the order in which they end."""
        waiting: queue.SimpleQueue[WorkerTask] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[WorkerTask, CompletedTask | FailedTask]] = queue.SimpleQueue()
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
                except Exception as error:  # without a result the caller would wait forever
                    outcome = FailedTask(f"the pool failed: {type(error).__name__}: {error}")
                done.put((task, outcome))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(self.jobs, count))]
        for thread in threads:
            thread.start()
        for _ in range(count):
            yield done.get()
        for thread in threads:
            thread.join()
