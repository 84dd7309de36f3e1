# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests in a worker process, whose results the process of the pytest command reports.

These are the tests of ``--isolate`` and ``--schedules``, and those whose marks need settings, seeds or faults
(``isolation``).

A forked worker has a copy of pytest's session after collection. A started worker has collected the same tests itself.
Each worker has separate fixtures and a separate capture of output. It writes no report to a terminal, a file or a
connection of xdist.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from ..workers import fork_safety, server

REPORTER = "openreg-isolation"  # the name of the plug-in that requests workers
_LEAF = (type(None), bool, int, float, str, bytes)  # types that every process can unpickle
# The hooks that report a running test. The worker removes their implementations, because the client reports the test.
_REPORTING_HOOKS = (
    "pytest_runtest_logstart",
    "pytest_runtest_logreport",
    "pytest_runtest_logfinish",
    "pytest_warning_recorded",
)

Key = tuple[str, int]  # identifies a test in every process: its node id, and its number among tests with that id


def keys(items: list[pytest.Item]) -> dict[pytest.Item, Key]:
    """Returns the keys of all tests of a session."""
    seen: dict[str, int] = {}
    found: dict[pytest.Item, Key] = {}
    for item in items:
        nodeid = str(item.nodeid)
        seen[nodeid] = seen.get(nodeid, -1) + 1
        found[item] = (nodeid, seen[nodeid])
    return found


class Isolated:
    """The server of a worker's requests.

    The requests are "start" once, "run" for each test, and "finish" at the end, in this order.
    """

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._items = {key: item for item, key in keys(session.items).items()}  # built before the fork

    def serve(self, request: tuple[Any, ...]) -> Any:
        """Runs one request, which is its name and its arguments, and returns its result."""
        name, *arguments = request
        methods: dict[str, Callable[..., Any]] = {"start": self._start, "run": self._run, "finish": self._finish}
        return methods[name](*arguments)

    def _start(self) -> dict[str, Any]:
        """Stops the session from reporting. Returns the process id and the descriptors of a running test's output."""
        config = self._session.config
        if config.pluginmanager.has_plugin(REPORTER):
            config.pluginmanager.unregister(name=REPORTER)
        for name in _REPORTING_HOOKS:
            caller = getattr(config.hook, name)
            for implementation in caller.get_hookimpls():
                caller._remove_plugin(implementation.plugin)
        captured = _capture_anew(config)
        config.pluginmanager.register(_ReportSender(config), "openreg-report-sender")
        return {"process": os.getpid(), "captured": captured}

    def _run(self, key: Key, following: Key | None) -> dict[str, Any]:
        """Runs a test and sends its reports as they are created. Fixtures that ``following`` uses stay set up.

        Raises LookupError if this process has not collected the test.
        """
        item = self._items.get(key)
        if item is None:
            raise LookupError(
                f"the process of an isolated test did not collect {key[0]}; collect the same tests in each process"
            )
        nextitem = None if following is None else self._items.get(following)
        answer: dict[str, Any] = {}
        try:
            self._session._setupstate.teardown_exact(item)  # fixtures kept for a following test that then ran elsewhere
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        except pytest.exit.Exception as end:
            answer["exit"] = (end.msg, end.returncode)
        except KeyboardInterrupt:
            answer["interrupted"] = True
        answer["stop"] = str(self._session.shouldstop or "")
        answer["device"] = bool(fork_safety.used_device())
        answer["broken"] = item.config.hook.pytest_openreg_broken_device() or ""
        return answer

    def _finish(self) -> None:
        """Tears down the remaining fixtures."""
        self._session._setupstate.teardown_exact(None)


class _ReportSender:
    """A plug-in that sends reports and warnings of tests to the process that reports them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        server.send_part(("report", plain(data)))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        if when == "runtest":  # pytest repeats earlier warnings to a plug-in that is registered late
            category = warning_message.category
            server.send_part(
                (
                    "warning",
                    {
                        "category": (category.__module__, category.__qualname__),
                        "message": str(warning_message.message),
                        "filename": warning_message.filename,
                        "lineno": warning_message.lineno,
                        "nodeid": str(nodeid),
                    },
                )
            )


def plain(value: Any) -> Any:
    """Returns a copy of ``value`` that any process can unpickle: objects of other types become their text."""
    if type(value) in _LEAF:
        return value
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else tuple(map(plain, value))
    return str(value)


def _capture_anew(config: pytest.Config) -> dict[str, int]:
    """Restarts the capture with files of this process, because a fork shares the session's files.

    Returns the descriptors behind standard output and error while a test is captured.
    """
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is None:
        return {}
    ours = [os.dup(1), os.dup(2)]
    manager.stop_global_capturing()  # restores the descriptors from before the session
    for number, handle in enumerate(ours, 1):
        os.dup2(handle, number)
        os.close(handle)
    manager.start_global_capturing()
    captured = {"stdout": os.dup(1), "stderr": os.dup(2)} if config.option.capture == "fd" else {}
    manager.suspend_global_capture(in_=False)
    return captured
