# SPDX-License-Identifier: BSD-3-Clause
"""Processes that share the work. One that crashes or takes too long costs its entry, and is replaced."""

import contextlib
import multiprocessing
import os
import queue
import tempfile
import threading
from pathlib import Path

from .worker import serve

START_LIMIT = 180  # seconds until a process has imported the table


class Pool:
    """Runs tasks (index, name, dtype) in `jobs` processes; reports come in the order in which they end.

    A task may take `limit` seconds. `settings` are named arguments of examine().
    """

    def __init__(self, jobs, limit, table, settings):
        self.jobs = jobs
        self.limit = limit
        self.settings = (table, settings)
        self.tasks = queue.SimpleQueue()
        self.reports = queue.SimpleQueue()

    def run(self, tasks):
        """Yields a report for every task."""
        for task in tasks:
            self.tasks.put(task)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            threads = [
                threading.Thread(target=self._work, args=(Path(folder) / f"{number}.log",), daemon=True)
                for number in range(min(self.jobs, len(tasks)))
            ]
            for thread in threads:
                thread.start()
            for _ in tasks:
                yield self.reports.get()
            for thread in threads:
                thread.join()

    def _work(self, log):
        worker = None
        while True:
            try:
                index, name, dtype = self.tasks.get_nowait()
            except queue.Empty:
                break
            worker = worker or Worker(log, self.settings)
            report, reason = worker.ask((index, dtype), self.limit)
            if report is None:
                worker.end()
                worker = None
                report = {"name": name, "dtype": dtype, "failures": {"process": reason}}
            self.reports.put(report)
        if worker:
            worker.end()


class Worker:
    """One process and the connection to it."""

    def __init__(self, log, settings):
        context = multiprocessing.get_context("spawn")
        self.log = log
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, str(log), *settings), daemon=True)
        # Read once, when the device is loaded: with torch, where openreg-autoload is installed.
        schedule = {"OPENREG_SCHEDULE_SEED": "1"} if "flags" in settings[1]["checks"] else {}
        with environment(**ONE_THREAD, **schedule):
            self.process.start()
        theirs.close()
        self.started = False

    def ask(self, task, limit):
        """The report, or None and the reason why there is none."""
        try:
            if not self.started:
                if not self.connection.poll(START_LIMIT):
                    return None, f"the process did not start within {START_LIMIT} s"
                self.connection.recv()
                self.started = True
            self.connection.send(task)
            if not self.connection.poll(limit):
                return None, f"took longer than {limit} s"
            return self.connection.recv(), None
        except (EOFError, OSError):
            self.process.join(10)
            lines = self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []
            last = next((line for line in lines if line.startswith("Fatal")), lines[-1] if lines else "")
            return None, f"the process crashed with exit code {self.process.exitcode}: {last}"

    def end(self):
        self.connection.close()
        self.process.join(5 if self.started else 0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


# Processes share the cores; a process with a team of threads for each of them would only be slower.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
ENVIRONMENT = threading.Lock()  # of this process, which those that it starts inherit


@contextlib.contextmanager
def environment(**variables):
    """Environment variables of the processes that are started in the block."""
    with ENVIRONMENT:
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
