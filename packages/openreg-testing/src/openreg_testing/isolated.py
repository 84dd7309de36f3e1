# SPDX-License-Identifier: BSD-3-Clause
"""The worker's side of ``isolation``: runs tests of a session that another process reports.

A forked worker has the session as it was after collection; one that was started has collected the same tests itself.
It has fixtures and a capture of its own. Nothing in it reports: no terminal, no file, no connection of xdist.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from . import fork_safety, workers

REPORTER = "openreg-isolation"  # the plug-in that asks for workers
_LEAF = (type(None), bool, int, float, str, bytes)
# The hooks that tell of a test as it runs: in two processes they would tell twice.
_TELLING = (
    "pytest_runtest_logstart",
    "pytest_runtest_logreport",
    "pytest_runtest_logfinish",
    "pytest_warning_recorded",
)

Key = tuple[str, int]  # names a test in every process: its node id, and which of those with this id


def keys(items: list[pytest.Item]) -> dict[pytest.Item, Key]:
    """The keys of all tests of a session."""
    seen: dict[str, int] = {}
    found: dict[pytest.Item, Key] = {}
    for item in items:
        nodeid = str(item.nodeid)
        seen[nodeid] = seen.get(nodeid, -1) + 1
        found[item] = (nodeid, seen[nodeid])
    return found


class Isolated:
    """Answers "start" once, then "run" for each test, and "finish", which leaves the fixtures that are still there."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._items = {key: item for item, key in keys(session.items).items()}  # before a fork: once for all workers

    def serve(self, request: tuple[Any, ...]) -> Any:
        """Answers one request: its name and its arguments."""
        name, *arguments = request
        answers: dict[str, Callable[..., Any]] = {"start": self._start, "run": self._run, "finish": self._finish}
        return answers[name](*arguments)

    def _start(self) -> dict[str, Any]:
        """Silences the session. Tells where the output of a test can be read while it runs."""
        config = self._session.config
        if config.pluginmanager.has_plugin(REPORTER):
            config.pluginmanager.unregister(name=REPORTER)
        for name in _TELLING:
            caller = getattr(config.hook, name)
            for implementation in caller.get_hookimpls():
                caller._remove_plugin(implementation.plugin)
        captured = _capture_anew(config)
        config.pluginmanager.register(_Teller(config), "openreg-teller")
        return {"process": os.getpid(), "captured": captured}

    def _run(self, key: Key, following: Key | None) -> dict[str, Any]:
        """Runs a test, and sends its reports as they are made. ``following`` decides which fixtures stay."""
        item = self._items.get(key)
        if item is None:
            raise LookupError(f"this process did not collect {key[0]}")
        nextitem = None if following is None else self._items.get(following)
        answer: dict[str, Any] = {}
        try:
            self._session._setupstate.teardown_exact(item)  # what stayed for a test that then ran elsewhere
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
        self._session._setupstate.teardown_exact(None)


class _Teller:
    """Sends what there is to tell to the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        workers.send_part(("report", plain(data)))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        if when == "runtest":  # pytest repeats the others here, for a plug-in that comes late
            category = warning_message.category
            workers.send_part(
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
    """The same of types that every process knows: a test's own objects become their text."""
    if type(value) in _LEAF:
        return value
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else tuple(map(plain, value))
    return str(value)


def _capture_anew(config: pytest.Config) -> dict[str, int]:
    """Captures to files of this process: those of the session are shared with the one that it was forked from.

    Gives the descriptors behind standard output and error while a test is captured.
    """
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is None:
        return {}
    ours = [os.dup(1), os.dup(2)]
    manager.stop_global_capturing()  # which puts back what was there when the session started
    for number, handle in enumerate(ours, 1):
        os.dup2(handle, number)
        os.close(handle)
    manager.start_global_capturing()
    captured = {"stdout": os.dup(1), "stderr": os.dup(2)} if config.option.capture == "fd" else {}
    manager.suspend_global_capture(in_=False)
    return captured
