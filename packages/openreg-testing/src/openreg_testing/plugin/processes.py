# SPDX-License-Identifier: BSD-3-Clause
"""A worker process, which runs tests, as the pytest process sees it: the reports and the output of these tests."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from ..workers.forks import Answer, ForkServer, Lost, SpawnServer, Worker


@dataclass
class IsolatedRun:
    """The run of one test in a worker: its reports, and the worker's reply."""

    config: pytest.Config
    item: pytest.Item
    reports: list[pytest.TestReport] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)  # the reply; empty if the worker ended during the test

    def take(self, part: tuple[str, Any]) -> None:
        """Records a report, or reports a warning, that a worker sent while the test ran."""
        kind, data = part
        if kind == "report":
            self.reports.append(self.config.hook.pytest_report_from_serializable(config=self.config, data=data))
        else:
            _report_warning(self.item, data)

    @property
    def failed(self) -> bool:
        """Returns True if a phase failed.

        A strict XPASS is no failure yet: the test is repeated with other seeds and may fail as expected with one of
        them.
        """
        return any(report.failed and not str(report.longrepr).startswith("[XPASS") for report in self.reports)

    @property
    def is_the_same_under_all_seeds(self) -> bool:
        """Returns True if the test used no device, was skipped, failed as expected, or ended the run."""
        over = self.answer.keys() & {"exit", "interrupted"} or self.answer.get("stop")
        return bool(over) or not self.answer.get("device") or any(report.skipped for report in self.reports)


class WorkerProcess:
    """A worker and the output of its tests, which stays readable after a crash."""

    def __init__(self, server: ForkServer | SpawnServer, settings: dict[str, str], limit: float) -> None:
        self.lost: Lost | None = None
        self._worker: Worker | None = None
        self._limit = limit
        self._captured: dict[str, IO[bytes]] = {}
        try:
            self._worker = server.worker(settings)
        except (OSError, RuntimeError) as error:
            self.lost = Lost(f"did not start: {error}", "")
            return
        answer = self.ask("start")
        if isinstance(answer, Lost):
            return
        for name, handle in answer.value["captured"].items():
            with contextlib.suppress(OSError):  # a system without /proc
                path = Path(f"/proc/{answer.value['process']}/fd/{handle}")
                self._captured[name] = path.open("rb")
        self._worker.written()  # discards the output of a started worker's collection

    def ask(self, *request: Any, on_part: Callable[[Any], None] | None = None) -> Answer | Lost:
        """Runs a request of ``Isolated`` in the worker, and returns the reply or how the worker ended."""
        if self.lost is None and self._worker is not None:
            self.lost = Lost("was interrupted", "")  # the state after Ctrl-C; any reply replaces it
            answer = self._worker.ask(request, self._limit, on_part)
            self.lost = answer if isinstance(answer, Lost) else None
            return answer
        assert self.lost is not None
        return self.lost

    def written(self) -> str:
        """Returns the uncaptured output since the last request."""
        return self._worker.written() if self._worker is not None else ""

    def captured(self) -> dict[str, str]:
        """Returns the captured output, by stream, of the test that is running or was running when the worker ended."""
        texts = {}
        for name, file in self._captured.items():
            file.seek(0)
            texts[name] = file.read().decode("utf-8", "replace")
        return {name: text for name, text in texts.items() if text}

    def close(self) -> None:
        """Ends the worker."""
        for file in self._captured.values():
            file.close()
        if self._worker is not None:
            self._worker.end()


def _report_warning(item: pytest.Item, data: dict[str, Any]) -> None:
    """Reports a warning of a worker, as one of the same class if this process has that class."""
    module, name = data["category"]
    category = getattr(sys.modules.get(module), name, None)
    try:
        message = category(data["message"])  # type: ignore[misc]
        if not isinstance(message, Warning):
            raise TypeError
    except Exception:  # the class exists only in the worker, or takes other arguments
        message = UserWarning(f"{name}: {data['message']}")
    record_warning(item.ihook, message, data["filename"], data["lineno"], "runtest", data["nodeid"])


def record_warning(hook: Any, message: Warning, filename: str, lineno: int, when: str, nodeid: str) -> None:
    """Reports a warning by pytest's hook, because ``warnings.warn`` would raise it if warnings are errors."""
    recorded = warnings.WarningMessage(message, type(message), filename, lineno)
    hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": recorded, "when": when, "nodeid": nodeid, "location": None}
    )
