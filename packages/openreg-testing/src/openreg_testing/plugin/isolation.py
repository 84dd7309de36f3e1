# SPDX-License-Identifier: BSD-3-Clause
"""Tests in separate processes: ``--isolate``, and the marks that require a separate process.

A device reads its settings once, when it is first used, and a crash ends the whole process. So a test with settings, or
one that may crash, runs in a separate process, a worker. Workers are forked from a server, a process that has collected
all tests and run none. If forks are impossible, each worker is started and collects the tests again. The process of the
pytest command reports the results of all workers.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import importlib.util
import os
import shlex
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..workers.fork_safety import can_fork, used_device
from ..workers.forks import Answer, ForkServer, Lost, SpawnServer, attend
from ..workers.server import ADDRESS
from . import loss, options, repeat
from .devices import INSTALL
from .isolated import REPORTER, Isolated, Key, keys
from .isolation_marks import DESCRIPTIONS, POISON, SEED, Requirements
from .isolation_marks import faults as marked_faults
from .libraries import restore_variable
from .processes import IsolatedRun, WorkerProcess, record_warning

LIMIT = 600.0  # seconds
LARGEST_SEED = 2**64 - 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("openreg", "tests on a device")
    group.addoption(
        "--isolate",
        action="store_true",
        help="run every test in a worker process; a crash, a hang or a broken device fails that test alone",
    )
    group.addoption(
        "--isolate-limit",
        type=_seconds,
        default=LIMIT,
        metavar="SECONDS",
        help=f"how long a test may take in a worker (default: {LIMIT:g})",
    )
    group.addoption(
        "--schedules",
        type=_seeds,
        metavar="N",
        help="run every selected test that uses openreg under the orders of streams of seeds 1 to N, with poisoned "
        "memory; with -m schedules, those that have the mark",
    )
    group.addoption(
        "--schedule-seed",
        type=_seed,
        metavar="SEED",
        help="run the tests under the order of streams of this seed, with poisoned memory, to repeat a failure",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Adds the hook by which other plug-ins report a broken device."""
    pluginmanager.add_hookspecs(_Hooks)


class _Hooks:
    """The specifications of this plug-in's hooks."""

    @pytest.hookspec(firstresult=True)
    def pytest_openreg_broken_device(self) -> str | None:
        """Returns the reason why no further test can use the device of this process, or None if tests can use it."""


@pytest.hookimpl(trylast=True)
def pytest_openreg_broken_device() -> str | None:
    """Returns the error of the second synchronization if two in a row fail, or None if the device is usable."""
    name = used_device()
    if not name:
        return None
    device = getattr(sys.modules["torch"], name)
    error = ""
    for _ in range(2):  # the first synchronization reports an asynchronous error that no earlier call has reported
        try:
            for index in range(device.device_count()):
                device.synchronize(index)
        except Exception as failure:
            error = str(failure).partition("\n")[0] or type(failure).__name__
        else:
            return None
    return error


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Sets the seed before any code can use the device, and poison, so that a racing read finds NaN."""
    seed = early_config.known_args_namespace.schedule_seed
    if seed is not None:
        for name, value in ((SEED, str(seed)), (POISON, os.environ.get(POISON, "1"))):
            early_config.add_cleanup(functools.partial(restore_variable, name, os.environ.get(name)))
            os.environ[name] = value


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marks, checks the options, and registers the plug-in of this process's role."""
    for mark in DESCRIPTIONS:
        config.addinivalue_line("markers", mark)
    option = config.option
    if option.schedules is not None and option.schedule_seed is not None:
        if any(given.partition("=")[0] == "--schedules" for given in map(str, config.invocation_params.args)):
            raise pytest.UsageError("--schedules and --schedule-seed exclude each other: seeds 1 to N, or one")
        option.schedules = None  # from a configuration file or PYTEST_ADDOPTS: --schedule-seed repeats one of its seeds
    debugger = "--pdb" if option.usepdb else "--trace" if option.trace else ""
    for name, given in (("--isolate", option.isolate), ("--schedules", option.schedules)):
        if debugger and given:
            way_out = "--schedule-seed runs one order of streams in this process" if name == "--schedules" else ""
            raise pytest.UsageError(
                f"{name} runs tests in other processes, which {debugger} cannot reach: leave out one of the options"
                + (f"; {way_out}" if way_out else "")
            )
    if ADDRESS in os.environ:
        config.pluginmanager.register(_SpawnedWorkerLoop(), "openreg-spawned-worker-loop")
    else:
        config.pluginmanager.register(Isolation(config), REPORTER)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Injects the faults of the mark while the test itself runs, without its fixtures."""
    faults = marked_faults(item)
    openreg = _openreg() if faults else None
    if openreg is None:
        return (yield)
    openreg.empty_cache()  # the fault "alloc" counts driver allocations, which a cached block would make unnecessary
    with openreg.inject_faults(faults):
        return (yield)


class _SpawnedWorkerLoop:
    """The plug-in of a started worker, which collects the same tests and then serves requests instead of running them.

    The requests come from the process that reports.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Serves requests, and ends the process when the connection ends."""
        attend(Isolated(session).serve)


@dataclass(frozen=True)
class _Plan:
    """The way in which a test runs in a worker."""

    settings: dict[str, str]  # environment variables of its process
    seeds: int  # the number of seeds, each in a separate process; 0: run once, without a seed
    alone: bool  # True if its process runs no other test


class Isolation:
    """A plug-in that selects the tests that run in workers, runs them there and reports the results."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._limit: float = config.option.isolate_limit
        self._plans: dict[pytest.Item, _Plan] = {}
        self._keys: dict[pytest.Item, Key] = {}
        self._server: ForkServer | SpawnServer | None = None
        self._shared: WorkerProcess | None = None  # runs the tests that need no separate process
        self._unforkable: str | None = None  # why forks are impossible
        self._since = ""  # the module, or other code, after which forks were found impossible
        self._threads = -1  # not counted yet
        self._in_xdist = hasattr(config, "workerinput")
        config.add_cleanup(self._close)

    # Collection

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Raises UsageError if an option selects an order of streams and there is no device openreg."""
        option = self._config.option
        name = "--schedules" if option.schedules is not None else "--schedule-seed"
        given = option.schedules is not None or option.schedule_seed is not None
        if given and not self._in_xdist and _openreg() is None:
            raise pytest.UsageError(
                f"{name} chooses the order of openreg's streams, and torch has no device openreg in this process; "
                f"to install it: {INSTALL}"
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Sets one thread for PyTorch during collection, so that no import starts OpenMP threads, which a fork loses.

        Does so only with --isolate or --schedules, because a device that is first used during collection keeps the
        setting of one thread.
        """
        option = self._config.option
        needs_workers = option.isolate or option.schedules is not None
        torch = _torch() if needs_workers else None
        self._check_forks("a conftest.py or a plug-in")
        if torch is None:
            return (yield)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return (yield)
        finally:
            torch.set_num_threads(threads)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Records the module whose import makes forks impossible, and under xdist checks the marks of its tests."""
        report = yield
        self._check_forks(str(collector.nodeid))
        if self._in_xdist and report.passed:  # xdist does not report usage errors of its workers
            try:
                for each in report.result:
                    if isinstance(each, pytest.Item):
                        self._plan(each)
            except pytest.UsageError as error:
                report.outcome, report.result, report.longrepr = "failed", [], str(error)
        return report

    def _check_forks(self, place: str) -> None:
        """Checks if this process can still be forked. ``place`` is the code that ran since the last check."""
        if self._unforkable is not None:
            return
        try:
            threads = len(list(Path("/proc/self/task").iterdir()))
        except OSError:
            threads = 0
        if threads != self._threads or used_device():
            self._threads = threads
            self._unforkable = can_fork()
            self._since = place

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Plans how each test runs. Raises UsageError for a mark with invalid arguments."""
        self._keys = keys(session.items)
        for item in session.items:
            plan = self._plan(item)
            if plan is not None:
                self._plans[item] = plan

    def _plan(self, item: pytest.Item) -> _Plan | None:
        """Returns the plan of a test, or None if it runs in this process as without this plug-in.

        Raises UsageError if its marks have invalid arguments or contradict the options.
        """
        option = self._config.option
        required = Requirements.of(item)
        settings, seeds, faults = required.settings, required.seeds, required.faults
        if (seeds or faults) and _openreg() is None:
            if faults:
                reason = "its mark faults needs openreg, and there is no device openreg"
                item.add_marker(pytest.mark.skip(reason=reason))
            seeds, faults = 0, ""
        if option.schedules is not None:
            seeds = option.schedules
        elif option.schedule_seed is not None:
            seeds = 0
        if SEED in settings and (seeds or option.schedule_seed is not None):
            raise pytest.UsageError(
                f"{item.nodeid}: its mark device_settings sets {SEED}, and so does its mark schedules, --schedules or "
                "--schedule-seed; leave out one of them"
            )
        if seeds and POISON not in os.environ:
            # Memory that a race reads too early may contain the expected value; poison makes the race visible.
            settings = {POISON: "1", **settings}
        settings = {name: value for name, value in settings.items() if os.environ.get(name) != value}
        debugger = option.usepdb or option.trace
        if debugger and (settings or seeds):
            needed = settings | ({SEED: "1"} if seeds else {})
            variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in needed.items())
            raise pytest.UsageError(
                f"{item.nodeid}: its marks require a separate process, which a debugger cannot reach; set what they "
                f"set instead: {variables} pytest ..., and use --schedule-seed for a mark with seeds"
            )
        alone = bool(settings or seeds or (faults and not debugger))
        return _Plan(settings, seeds, alone) if alone or option.isolate else None

    # Running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Starts the server before this process runs its first test."""
        option = self._config.option
        stopped = session.testsfailed and not option.continue_on_collection_errors
        if not self._plans or option.collectonly or stopped:
            return
        factory = getattr(self._config, "_tmp_path_factory", None)
        if factory is not None:
            factory.getbasetemp()  # one folder for all processes, because each worker would otherwise create another
        self._check_forks("the last module")
        if self._unforkable is None:
            self._server = ForkServer(Isolated(session).serve)
        else:
            self._server = SpawnServer(command=self._command())
            self._warn_of_spawning()

    def _command(self) -> list[str]:
        """Returns the command of a pytest that collects the same tests and writes no log file."""
        command = [sys.executable, "-m", "pytest", *repeat.arguments(self._config)]
        if self._config.pluginmanager.has_plugin("xdist"):
            command.append("-n0")
        if self._config.getoption("log_file", None) or self._config.getini("log_file"):
            command.append(f"--log-file={os.devnull}")  # the worker would truncate the file
        return command

    def _warn_of_spawning(self) -> None:
        """Reports a warning that names the module after whose import forks were impossible."""
        text = (
            "the processes of isolated tests are started, not forked, and each repeats imports and collection: "
            f"{self._unforkable} (noticed after {self._since}). If a module uses the device when it is imported, use "
            "the device in a fixture instead."
        )
        place = self._config.rootpath / self._since
        file = str(place if place.is_file() else Path(__file__))
        record_warning(self._config.hook, pytest.PytestWarning(text), file, 1, "collect", "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Runs a planned test in a worker and reports its results; returns None for any other test."""
        plan = self._plans.get(item)
        if plan is None:
            return None
        cancel = getattr(item.ihook, "pytest_timeout_cancel_timer", None)
        if cancel is not None:
            cancel(item=item)  # the worker starts another timer
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        run = self._run_schedules(item, plan) if plan.seeds else self._run_once(item, plan, nextitem)
        failures = list(self._tear_down(item, nextitem))
        kept = [report for report in run.reports if not (failures and report.when == "teardown" and report.passed)]
        for report in kept + failures:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if "exit" in run.answer:
            pytest.exit(*run.answer["exit"])
        if "interrupted" in run.answer:
            raise KeyboardInterrupt
        if run.answer.get("stop"):
            item.session.shouldstop = run.answer["stop"]
        return True

    def _run_once(self, item: pytest.Item, plan: _Plan, nextitem: pytest.Item | None) -> IsolatedRun:
        """Runs a test in a process of its own or in the shared worker, as its plan requires."""
        if plan.alone:
            process = self._process(plan.settings)
            try:
                return self._run_in(process, item, None)
            finally:
                process.close()
        if self._shared is None:
            self._shared = self._process({})
        run = self._run_in(self._shared, item, nextitem)
        if self._shared.lost or run.answer["broken"]:
            process, self._shared = self._shared, None
            process.ask("finish")  # tears down fixtures, as far as a broken device permits; no effect on a lost worker
            process.close()
        return run

    def _run_schedules(self, item: pytest.Item, plan: _Plan) -> IsolatedRun:
        """Runs a test under each seed in turn, up to the first seed that fails."""
        seconds = {"setup": 0.0, "call": 0.0, "teardown": 0.0}
        for seed in range(1, plan.seeds + 1):
            process = self._process({**plan.settings, SEED: str(seed)})
            try:
                run = self._run_in(process, item, None)
            finally:
                process.close()
            for report in run.reports:
                seconds[report.when] += report.duration
            if run.failed:
                self._explain_seed(run, seed, plan.seeds)
            if run.failed or run.is_the_same_under_all_seeds:
                break
        for report in run.reports:
            report.duration = seconds[report.when]
            report.user_properties.append(("openreg.schedules", seed))
        return run

    def _explain_seed(self, run: IsolatedRun, seed: int, seeds: int) -> None:
        """Adds the seed, the command that repeats the test with it, and the next step to the failed reports."""
        again = repeat.command(self._config, run.item.nodeid, f"--schedule-seed={seed}")
        text = f"Failed with schedule seed {seed}, the first failing seed of 1 to {seeds}. To repeat:\n    {again}"
        given = options.settings(self._config)
        if not given.sanitize:
            device = () if given.target else ("--device", "openreg")
            search = repeat.command(self._config, run.item.nodeid, *device, "--sanitize")
            text += (
                "\nA NaN can be the poison of memory that a race reads. To find the lines that race, and the missing "
                f"one:\n    {search}"
            )
        for report in run.reports:
            if report.failed:
                loss.explain(report, f"seed {seed}", text)

    def _process(self, settings: dict[str, str]) -> WorkerProcess:
        assert self._server is not None
        return WorkerProcess(self._server, settings, self._limit)

    def _run_in(self, process: WorkerProcess, item: pytest.Item, nextitem: pytest.Item | None) -> IsolatedRun:
        """Runs a test in a worker, and returns its reports, or those of a failure if the worker ended."""
        run = IsolatedRun(self._config, item)
        started = time.time()
        following = None if nextitem is None else self._keys[nextitem]
        answer = process.ask("run", self._keys[item], following, on_part=run.take)
        if isinstance(answer, Answer):
            run.answer = answer.value
            if run.answer["broken"]:
                for report in run.reports:
                    report.user_properties.append(("openreg.broken_device", run.answer["broken"]))
            self._echo(process.written())
        else:
            run.reports += loss.reports(item, run.reports, answer, process.captured(), started)
        return run

    def _echo(self, text: str) -> None:
        """Writes the uncaptured output of a test, as with -s, ``capsys.disabled()`` or live logs."""
        if text and not self._in_xdist:
            sys.stdout.write(text)
            sys.stdout.flush()

    def _tear_down(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
        """Tears down the fixtures that no further test uses, and yields the report of each teardown that failed.

        These are fixtures of this process and, after the last test, those of the shared worker.
        """
        call = pytest.CallInfo.from_call(
            lambda: item.session._setupstate.teardown_exact(nextitem),
            "teardown",
            reraise=(pytest.exit.Exception, KeyboardInterrupt),
        )
        if call.excinfo is not None:
            yield pytest.TestReport.from_item_and_call(item, call)
        lost = self._finish_shared() if nextitem is None else None
        if lost is not None:
            text = f"the teardown of earlier tests' fixtures {lost.reason}\n\n{lost.output}"
            yield loss.report(item, "teardown", text)

    def _finish_shared(self) -> Lost | None:
        """Ends the shared worker, if there is one; returns how its last teardown failed, or None if it succeeded."""
        process, self._shared = self._shared, None
        if process is None:
            return None
        try:
            if process.lost is None:
                process.ask("finish")
                return process.lost
            return None
        finally:
            process.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Ends all workers, also if the session was stopped."""
        lost = self._finish_shared()
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if lost is not None and terminal is not None:
            terminal.write_line(f"isolation: the teardown of fixtures {lost.reason}\n{lost.output}", red=True)
        self._close()

    def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()


def _openreg() -> Any:
    """Returns the module ``torch.openreg``, or None if there is none."""
    return getattr(_torch(), "openreg", None)


def _torch() -> Any:
    return importlib.import_module("torch") if importlib.util.find_spec("torch") is not None else None


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"give a number of seconds above 0, not {text!r}")


def _seeds(text: str) -> int:
    return _whole_number(text, 1, LARGEST_SEED)


def _seed(text: str) -> int:
    return _whole_number(text, 0, LARGEST_SEED)


def _whole_number(text: str, least: int, most: int) -> int:
    if text.isascii() and text.isdecimal() and least <= int(text) <= most:
        return int(text)
    raise argparse.ArgumentTypeError(f"give a whole number from {least} to {most}, not {text!r}")
