# SPDX-License-Identifier: BSD-3-Clause
"""Processes that share the work. One that crashes or takes too long costs its task, and is replaced.

A task is an object with a method ``run()`` that gives what can be pickled; it runs in a worker, which has run a first
one that prepares it. What a worker prints goes to a file of its own, whose last lines tell how it ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import queue
import signal
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

START_LIMIT = 300  # seconds until a process has imported what it needs
END_LIMIT = 5
LAST_LINES = 8
# Processes share the cores; a process with a team of threads for each of them would only be slower.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


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
        """In one line: the reason, and what the process said last."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        last = next((line for line in lines if line.startswith("Fatal")), lines[-1] if lines else "")
        return f"{self.reason}: {last}" if last else self.reason


class Worker:
    """One process and the connection to it."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self.log = log
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, str(log)), daemon=True)
        with environment_of(environment):
            self.process.start()
        theirs.close()

    def ask(self, task: Task, limit: float | None = None) -> Answer | Lost:
        """What the task gave, or why there is nothing; after that the process is gone."""
        try:
            self.connection.send(task)
            if not self.connection.poll(limit):
                self.process.kill()
                self.process.join()
                return Lost(f"took longer than {limit:g} s", self._output())
            answer = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(END_LIMIT)
            return Lost(f"the process crashed with {_exit(self.process.exitcode)}", self._output())
        assert isinstance(answer, (Answer, Lost))
        return answer

    def end(self) -> None:
        """Leaves no process behind."""
        self.connection.close()
        self.process.join(END_LIMIT)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _output(self) -> str:
        lines = self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []
        fatal = [line for line in lines if line.startswith("Fatal")]
        return "\n".join([*fatal[-1:], *lines[-LAST_LINES:]])


def _exit(code: int | None) -> str:
    if code is None:
        return "no exit code"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"exit code {code} ({signal.Signals(-code).name})"
    return f"exit code {code}"


def _serve(connection: Connection, log: str) -> None:
    """Answers tasks until the other side closes the connection."""
    stream = Path(log).open("a+", encoding="utf-8")  # noqa: SIM115  (until the end; readable too: warnings that only appear there are compared)
    os.dup2(stream.fileno(), 1)
    os.dup2(stream.fileno(), 2)
    faulthandler.enable()
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            answer = task.run()
        except Exception as error:
            import traceback

            traceback.print_exc()
            answer = Lost(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}")
        connection.send(answer if isinstance(answer, (Answer, Lost)) else Answer(answer))


class Pool:
    """Runs tasks in `jobs` processes, each of which runs `prepare` first; a task may take `limit` seconds."""

    def __init__(self, prepare: Task, jobs: int, limit: float, environment: Mapping[str, str] | None = None) -> None:
        self.prepare = prepare
        self.jobs = jobs
        self.limit = limit
        self.environment = {**ONE_THREAD, **(environment or {})}
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.spare: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self.started = 0
        self.lock = threading.Lock()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        while not self.spare.empty():
            self.spare.get_nowait().end()
        self.folder.cleanup()

    def ask(self, task: Task) -> Answer | Lost:
        """The outcome of one task, in a process that is kept for the next one where that is possible."""
        try:
            worker = self.spare.get_nowait()
        except queue.Empty:
            started = self._start()
            if isinstance(started, Lost):
                return started
            worker = started
        outcome = worker.ask(task, self.limit)
        if (isinstance(outcome, Answer) and outcome.spent) or not worker.process.is_alive():
            worker.end()
        else:
            self.spare.put(worker)
        return outcome

    def probe(self) -> Answer | Lost:
        """What `prepare` gives in a process of its own."""
        with self.lock:
            self.started += 1
            log = Path(self.folder.name) / f"{self.started}.log"
        worker = Worker(log, self.environment)
        outcome = worker.ask(self.prepare, START_LIMIT)
        worker.end()
        return outcome

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

    def _start(self) -> Worker | Lost:
        with self.lock:
            self.started += 1
            log = Path(self.folder.name) / f"{self.started}.log"
        worker = Worker(log, self.environment)
        outcome = worker.ask(self.prepare, START_LIMIT)
        if isinstance(outcome, Lost):
            worker.end()
            return Lost(f"the process did not start: {outcome.reason}", outcome.output)
        return worker


_ENVIRONMENT = threading.Lock()  # of this process, which those that it starts inherit


@contextlib.contextmanager
def environment_of(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables of the processes that are started in the block."""
    with _ENVIRONMENT:
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
