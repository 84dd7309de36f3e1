# SPDX-License-Identifier: BSD-3-Clause
"""Tests in processes of their own: ``--isolate``, and the marks ``schedules``, ``poison``, ``faults`` and ``settings``.

A device reads its settings once, when it is first used, and what crashes takes its process along. Both ask for a fresh
process, which is forked: from one that has collected all tests and run none. This process reports what the others run.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from .fork_safety import can_fork, used_device
from .forks import Answer, ForkServer, Lost, SpawnServer, Worker, attend
from .isolated import REPORTER, Isolated, Key, keys
from .workers import ADDRESS

SEED = "OPENREG_SCHEDULE_SEED"
POISON = "OPENREG_POISON"
SEEDS = 200  # of a mark that gives no number
LIMIT = 600.0  # seconds
LARGEST_SEED = 2**64 - 1

_FAULT = re.compile(r"(alloc|copy|launch|lose):[1-9]\d*(@\d+)?")
_FAULTS = 'KIND:N or KIND:N@DEVICE with KIND one of alloc, copy, launch, lose, such as faults("alloc:1", "copy:3@1")'
_MARKS = (
    "schedules(seeds=200): run the test under so many orders of streams, each in a process of its own (openreg)",
    "poison: run the test with memory that is filled with NaN when it is allocated and when it is released (openreg)",
    'faults("alloc:1", ...): let these allocations, copies or launches of the test fail (openreg)',
    'settings(OPENREG_DEVICE_MEMORY="64MiB", ...): run the test in a process with these environment variables',
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("openreg", "tests on a device")
    group.addoption(
        "--isolate",
        action="store_true",
        help="run every test in a worker process; a crash, a hang or a broken device costs that test alone",
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
        help="run every selected test that uses openreg under the orders of streams of seeds 1 to N; "
        "with -m schedules, those that have the mark",
    )
    group.addoption(
        "--schedule-seed",
        type=_seed,
        metavar="SEED",
        help="run the tests under the order of streams of this seed, to repeat a failure",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """What other plug-ins can tell this one."""
    pluginmanager.add_hookspecs(_Hooks)


class _Hooks:
    @pytest.hookspec(firstresult=True)
    def pytest_openreg_broken_device(self) -> str | None:
        """Why the device of this process is of no use to a further test; None if it is."""


@pytest.hookimpl(trylast=True)
def pytest_openreg_broken_device() -> str | None:
    """A device that fails twice to finish its work, when nothing new was given to it."""
    name = used_device()
    if not name:
        return None
    device = getattr(sys.modules["torch"], name)
    error = ""
    for _ in range(2):  # an error that nobody has waited for shows once
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
    """Sets the seed before anything can use the device."""
    seed = early_config.known_args_namespace.schedule_seed
    if seed is not None:
        before = os.environ.get(SEED)
        os.environ[SEED] = str(seed)
        early_config.add_cleanup(lambda: _put_back(SEED, before))


def _put_back(name: str, before: str | None) -> None:
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before


def pytest_configure(config: pytest.Config) -> None:
    """Checks the options."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)
    option = config.option
    if option.schedules is not None and option.schedule_seed is not None:
        raise pytest.UsageError("--schedules and --schedule-seed exclude each other: seeds 1 to N, or one")
    debugger = "--pdb" if option.usepdb else "--trace" if option.trace else ""
    for name, given in (("--isolate", option.isolate), ("--schedules", option.schedules)):
        if debugger and given:
            way_out = "--schedule-seed runs one order of streams in this process" if name == "--schedules" else ""
            raise pytest.UsageError(
                f"{name} runs tests in other processes, which {debugger} cannot reach: leave out one of them"
                + (f"; {way_out}" if way_out else "")
            )
    if ADDRESS in os.environ:
        config.pluginmanager.register(_Attendant(), "openreg-attendant")
    else:
        config.pluginmanager.register(Isolation(config), REPORTER)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Arms the faults of the mark, for the test itself."""
    faults = _faults(item)
    openreg = _openreg() if faults else None
    if openreg is None:
        return (yield)
    openreg.empty_cache()  # "alloc" counts what the allocator asks of the device, not what it kept
    with openreg.inject_faults(faults):
        return (yield)


class _Attendant:
    """In a worker that was started: collects as the asking process did, and then does what it asks."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        attend(Isolated(session).serve)


@dataclass(frozen=True)
class _Plan:
    """How a test is run."""

    settings: dict[str, str]  # environment variables of its process
    seeds: int  # how many it is repeated under, each in a process of its own; 0: once, as it is
    alone: bool  # in a process that runs no other test


@dataclass
class _Run:
    """What a worker told of a test."""

    config: pytest.Config
    item: pytest.Item
    reports: list[pytest.TestReport] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)

    def take(self, part: tuple[str, Any]) -> None:
        """Something that a worker sent while the test ran."""
        kind, data = part
        if kind == "report":
            self.reports.append(self.config.hook.pytest_report_from_serializable(config=self.config, data=data))
        else:
            _pass_on_warning(self.item, data)

    @property
    def failed(self) -> bool:
        return any(report.failed for report in self.reports)

    @property
    def skipped(self) -> bool:
        return any(report.skipped for report in self.reports)


class _Desk:
    """A worker, and what its tests print, which stays readable when it crashes."""

    def __init__(self, worker: Worker, limit: float) -> None:
        self.worker = worker
        self.lost: Lost | None = None
        self._captured: dict[str, IO[bytes]] = {}
        answer = worker.ask(("start",), limit)
        if isinstance(answer, Lost):
            self.lost = answer
            return
        for name, handle in answer.value["captured"].items():
            with contextlib.suppress(OSError):  # the system has no such files
                path = Path(f"/proc/{answer.value['process']}/fd/{handle}")
                self._captured[name] = path.open("rb")
        worker.written()  # what a worker that was started said while it collected

    def captured(self) -> dict[str, str]:
        """What the test printed that runs, or was running."""
        texts = {}
        for name, file in self._captured.items():
            file.seek(0)
            texts[name] = file.read().decode("utf-8", "replace")
        return {name: text for name, text in texts.items() if text}

    def close(self) -> None:
        """Ends the worker."""
        for file in self._captured.values():
            file.close()
        self.worker.end()


class Isolation:
    """Decides which tests run in workers, has them run there, and reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._limit: float = config.option.isolate_limit
        self._plans: dict[pytest.Item, _Plan] = {}
        self._keys: dict[pytest.Item, Key] = {}
        self._server: ForkServer | SpawnServer | None = None
        self._shared: _Desk | None = None  # runs the tests that need no process of their own
        self._unforkable: str | None = None
        self._since = ""  # what was collected when it became so
        self._threads = 0
        config.add_cleanup(self._close)

    # Collection

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Modules that compute when they are imported start no OpenMP threads, which a fork would lose."""
        option = self._config.option
        if (option.isolate or option.schedules) and importlib.util.find_spec("torch") is not None:
            importlib.import_module("torch")
        torch = sys.modules.get("torch")
        self._look("a conftest.py or a plug-in")
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
        """Notices which module uses the device when it is imported."""
        report = yield
        self._look(str(collector.nodeid))
        return report

    def _look(self, place: str) -> None:
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
        """Plans how each test is run; refuses marks with bad arguments."""
        option = self._config.option
        if (option.schedules is not None or option.schedule_seed is not None) and _openreg() is None:
            name = "--schedules" if option.schedules is not None else "--schedule-seed"
            raise pytest.UsageError(
                f"{name} chooses the order of openreg's streams, and torch has no device openreg in this process: "
                "pip install openreg-testing[device]"
            )
        self._keys = keys(session.items)
        for item in session.items:
            plan = self._plan(item)
            if plan is not None:
                self._plans[item] = plan

    def _plan(self, item: pytest.Item) -> _Plan | None:
        """None: in this process, as without this plug-in."""
        option = self._config.option
        settings = _settings(item)
        seeds, poison, faults = _schedules(item), _poison(item), _faults(item)
        if (seeds or poison or faults) and _openreg() is None:
            if faults:
                item.add_marker(pytest.mark.skip(reason="its faults are openreg's, and there is no device openreg"))
            seeds, poison, faults = 0, False, ""
        if poison:
            settings.setdefault(POISON, "1")
        if option.schedules is not None:
            seeds = option.schedules
        elif option.schedule_seed is not None:
            seeds = 0
        if seeds and SEED in settings:
            raise pytest.UsageError(f"{item.nodeid}: its mark settings gives {SEED}, and other seeds are asked for too")
        settings = {name: value for name, value in settings.items() if os.environ.get(name) != value}
        debugger = option.usepdb or option.trace
        if debugger and (settings or seeds):
            needed = settings | ({SEED: "1"} if seeds else {})
            variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in needed.items())
            raise pytest.UsageError(
                f"{item.nodeid}: its marks ask for a process of its own, which a debugger cannot reach; set what they "
                f"ask for: {variables} pytest --pdb ..., with --schedule-seed for the order of streams"
            )
        alone = bool(settings or seeds or (faults and not debugger))
        return _Plan(settings, seeds, alone) if alone or option.isolate else None

    # Running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Starts the server, while this process has not run a test yet."""
        option = self._config.option
        stopped = session.testsfailed and not option.continue_on_collection_errors
        if not self._plans or option.collectonly or stopped:
            return
        factory = getattr(self._config, "_tmp_path_factory", None)
        if factory is not None:
            factory.getbasetemp()  # one for all processes, else each would make its own
        self._look("the last module")
        if self._unforkable is None:
            self._server = ForkServer(Isolated(session).serve)
        else:
            self._server = SpawnServer(command=self._command())
            self._tell_of_spawning()

    def _command(self) -> list[str]:
        """Starts a pytest that collects the same tests, and reports nowhere."""
        command = [sys.executable, "-m", "pytest", *self._arguments()]
        if self._config.pluginmanager.has_plugin("xdist"):
            command.append("-n0")
        if self._config.getoption("log_file", None) or self._config.getini("log_file"):
            command.append(f"--log-file={os.devnull}")  # it would be emptied
        return command

    def _arguments(self) -> list[str]:
        """Of the command line, also in a worker of xdist."""
        controller = getattr(self._config, "workerinput", {}).get("mainargv")
        return list(controller[1:]) if controller else [str(each) for each in self._config.invocation_params.args]

    def _tell_of_spawning(self) -> None:
        text = (
            f"the processes of isolated tests are started, not forked, and each takes as long as import and collection "
            f"do: {self._unforkable}. It was noticed after {self._since}. A module that touches the device when it is "
            "imported should do so in a fixture."
        )
        location = Path(__file__)
        message = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, str(location), 1)
        self._config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": message, "when": "collect", "nodeid": "", "location": None}
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Has the test run by a worker."""
        plan = self._plans.get(item)
        if plan is None:
            return None
        cancel = getattr(item.ihook, "pytest_timeout_cancel_timer", None)
        if cancel is not None:
            cancel(item=item)  # the worker has a timer of its own
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        run = self._run_schedules(item, plan) if plan.seeds else self._run_once(item, plan, nextitem)
        reports = [*run.reports, *self._leave(item, nextitem)]
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if "exit" in run.answer:
            pytest.exit(*run.answer["exit"])
        if "interrupted" in run.answer:
            raise KeyboardInterrupt
        if run.answer.get("stop"):
            item.session.shouldstop = run.answer["stop"]
        return True

    def _run_once(self, item: pytest.Item, plan: _Plan, nextitem: pytest.Item | None) -> _Run:
        if plan.alone:
            desk = self._desk(plan.settings)
            try:
                return self._ask(desk, item, None)
            finally:
                desk.close()
        if self._shared is None:
            self._shared = self._desk({})
        run = self._ask(self._shared, item, nextitem)
        if self._shared.lost or run.answer["broken"]:
            desk, self._shared = self._shared, None
            if not desk.lost:
                desk.worker.ask(("finish",), self._limit)  # as far as it can
            desk.close()
        return run

    def _run_schedules(self, item: pytest.Item, plan: _Plan) -> _Run:
        """Under one seed after the other, up to the first that fails."""
        seconds = {"setup": 0.0, "call": 0.0, "teardown": 0.0}
        for seed in range(1, plan.seeds + 1):
            desk = self._desk({**plan.settings, SEED: str(seed)})
            try:
                run = self._ask(desk, item, None)
            finally:
                desk.close()
            for report in run.reports:
                seconds[report.when] += report.duration
            if run.failed:
                self._tell_of_seed(run, seed, plan.seeds)
            if run.failed or run.skipped or not run.answer.get("device"):  # without a device there is nothing to order
                break
            if run.answer.keys() & {"exit", "interrupted"} or run.answer["stop"]:
                break
        for report in run.reports:
            report.duration = seconds[report.when]
            report.user_properties.append(("openreg.schedules", seed))
        return run

    def _tell_of_seed(self, run: _Run, seed: int, seeds: int) -> None:
        again = f"{self._repeat(run.item)} --schedule-seed {seed}"
        text = f"It failed with the order of streams of seed {seed}, the first of 1 to {seeds} that fails. To repeat:"
        for report in run.reports:
            if report.failed:
                _explain(report, f"seed {seed}", f"{text}\n    {again}")

    def _repeat(self, item: pytest.Item) -> str:
        """The command that runs this test as it was run."""
        kept: list[str] = []
        places = {str(each) for each in getattr(self._config.known_args_namespace, "file_or_dir", ())}
        arguments = iter(self._arguments())
        for argument in arguments:
            if argument in ("--schedules", "-n", "-k", "-m"):
                next(arguments, None)
            elif argument not in places and not re.match(r"--schedules=|-n\d|-n=|-x$", argument):
                kept.append(argument)
        path, separator, rest = str(item.nodeid).partition("::")
        place = os.path.relpath(self._config.rootpath / path, self._config.invocation_params.dir)
        return shlex.join(["pytest", Path(place).as_posix() + separator + rest, *kept])

    def _desk(self, settings: dict[str, str]) -> _Desk:
        assert self._server is not None
        return _Desk(self._server.worker(settings), self._limit)

    def _ask(self, desk: _Desk, item: pytest.Item, nextitem: pytest.Item | None) -> _Run:
        run = _Run(self._config, item)
        begun = time.time()
        answer: Answer | Lost
        if desk.lost is not None:
            answer = desk.lost
        else:
            following = None if nextitem is None else self._keys[nextitem]
            answer = desk.worker.ask(("run", self._keys[item], following), self._limit, run.take)
        if isinstance(answer, Answer):
            run.answer = answer.value
            self._echo(desk.worker.written())
        else:
            desk.lost = answer
            run.reports += _reports_of_loss(item, run.reports, answer, desk.captured(), begun)
        return run

    def _echo(self, text: str) -> None:
        """Shows what a test wrote past its capture: with -s, by capsys.disabled(), as a live log."""
        if text and not hasattr(self._config, "workerinput"):
            sys.stdout.write(text)
            sys.stdout.flush()

    def _leave(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
        """Leaves fixtures that no further test uses: those in this process, and at last those of the shared worker."""
        call = pytest.CallInfo.from_call(
            lambda: item.session._setupstate.teardown_exact(nextitem),
            "teardown",
            reraise=(pytest.exit.Exception, KeyboardInterrupt),
        )
        if call.excinfo is not None:
            yield pytest.TestReport.from_item_and_call(item, call)
        lost = self._finish() if nextitem is None else None
        if lost is not None:
            yield _report(item, "teardown", f"leaving the fixtures of earlier tests {lost.reason}\n\n{lost.output}")

    def _finish(self) -> Lost | None:
        desk, self._shared = self._shared, None
        if desk is None:
            return None
        try:
            answer = desk.worker.ask(("finish",), self._limit)
            return answer if isinstance(answer, Lost) else None
        finally:
            desk.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Ends all workers, also where the session was stopped."""
        lost = self._finish()
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if lost is not None and terminal is not None:
            terminal.write_line(f"isolation: leaving the fixtures {lost.reason}\n{lost.output}", red=True)
        self._close()

    def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()


def _reports_of_loss(
    item: pytest.Item, before: list[pytest.TestReport], lost: Lost, captured: dict[str, str], begun: float
) -> list[pytest.TestReport]:
    """The failure of the phase in which the worker was lost, and the end of the test, which every reporter awaits."""
    done = {report.when for report in before}
    when = "teardown" if "call" in done else "call" if "setup" in done else "setup"
    text = f"its process {lost.reason} in the {when} of the test"
    stack = _own_part(lost.output)
    report = _report(item, when, f"{text}\n\n{stack}" if stack else text)
    report.sections += [(f"Captured {name} {when}", text) for name, text in captured.items()]
    report.start, report.stop = begun, time.time()
    report.duration = report.stop - begun
    if _is_expected(item):
        report.outcome, report.wasxfail = "skipped", text
    return [report] if when == "teardown" else [report, _report(item, "teardown", "")]


def _report(item: pytest.Item, when: Any, text: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed" if text else "passed",
        longrepr=text or None,
        when=when,
    )


def _is_expected(item: pytest.Item) -> bool:
    """Whether the test may fail in any way, by its mark xfail."""
    from _pytest.skipping import evaluate_xfail_marks

    expected = None if item.config.option.runxfail else evaluate_xfail_marks(item)
    return expected is not None and expected.raises is None


def _own_part(output: str) -> str:
    """A stack without the calls of pytest and of this package that lead to the test."""
    lines = []
    skipping = False
    for line in output.splitlines():
        if not line.startswith("  File "):
            skipping = False
        elif re.search(r"in (pytest_pyfunc_call|call_fixture_func|runtest)$", line):
            skipping = True
        if not skipping:
            lines.append(line)
    return "\n".join(lines)


def _explain(report: pytest.TestReport, title: str, text: str) -> None:
    longrepr: Any = report.longrepr
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = f"{title}: {crash.message}"
    if hasattr(longrepr, "addsection"):
        longrepr.addsection(title, text)
    else:
        report.longrepr = f"{title}: {longrepr}\n\n{text}"


def _pass_on_warning(item: pytest.Item, data: dict[str, Any]) -> None:
    module, name = data["category"]
    category = getattr(sys.modules.get(module), name, None)
    try:
        message = category(data["message"])  # type: ignore[misc]
        if not isinstance(message, Warning):
            raise TypeError
    except Exception:  # a class that only the worker has, or that takes other arguments
        message = UserWarning(f"{name}: {data['message']}")
    recorded = warnings.WarningMessage(message, type(message), data["filename"], data["lineno"])
    item.ihook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": recorded, "when": "runtest", "nodeid": data["nodeid"], "location": None}
    )


# Marks


def _openreg() -> Any:
    """The module torch.openreg; None if there is none."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    return getattr(torch, "openreg", None)


def _refuse(item: pytest.Item, mark: pytest.Mark, accepted: str) -> pytest.UsageError:
    given = ", ".join([*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())])
    return pytest.UsageError(f"{item.nodeid}: the mark {mark.name}({given}) is not accepted; it takes {accepted}")


def _schedules(item: pytest.Item) -> int:
    mark = item.get_closest_marker("schedules")
    if mark is None:
        return 0
    names = mark.kwargs.keys() <= {"seeds"} and len(mark.args) + len(mark.kwargs) <= 1
    seeds = mark.kwargs.get("seeds", mark.args[0] if mark.args else SEEDS)
    if not names or type(seeds) is not int or seeds < 1:
        raise _refuse(item, mark, "a number of seeds from 1 on, such as schedules(seeds=200)")
    return seeds


def _poison(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("poison")
    if mark is not None and (mark.args or mark.kwargs):
        raise _refuse(item, mark, "no argument")
    return mark is not None


def _faults(item: pytest.Item) -> str:
    mark = item.get_closest_marker("faults")
    if mark is None:
        return ""
    faults = [fault for argument in mark.args for fault in (argument.split(",") if isinstance(argument, str) else [""])]
    if mark.kwargs or not faults or not all(map(_FAULT.fullmatch, faults)):
        raise _refuse(item, mark, _FAULTS)
    return ",".join(faults)


def _settings(item: pytest.Item) -> dict[str, str]:
    settings: dict[str, str] = {}
    for mark in item.iter_markers("settings"):  # the closest first
        accepted = (
            not mark.args and mark.kwargs and all(isinstance(value, (str, int)) for value in mark.kwargs.values())
        )
        if not accepted:
            raise _refuse(item, mark, 'environment variables, such as settings(OPENREG_DEVICE_MEMORY="64MiB")')
        settings = {name: str(value) for name, value in mark.kwargs.items()} | settings
    return settings


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
