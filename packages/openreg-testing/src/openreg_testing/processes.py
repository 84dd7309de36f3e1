# SPDX-License-Identifier: BSD-3-Clause
"""A process that runs tests, as the one that reports sees it: what it tells of a test, and what the test printed."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from .forks import Answer, ForkServer, Lost, SpawnServer, Worker


@dataclass
class Run:
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
        """Whether a phase failed. That a test passed which may only fail says nothing of the next seed."""
        return any(report.failed and not str(report.longrepr).startswith("[XPASS") for report in self.reports)

    @property
    def is_the_same_under_all_seeds(self) -> bool:
        """Whether it used no device, was skipped, failed as expected, or ended the run."""
        over = self.answer.keys() & {"exit", "interrupted"} or self.answer.get("stop")
        return bool(over) or not self.answer.get("device") or any(report.skipped for report in self.reports)


class Process:
    """A worker, and what its tests print, which stays readable when it crashes."""

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
            with contextlib.suppress(OSError):  # the system has no such files
                path = Path(f"/proc/{answer.value['process']}/fd/{handle}")
                self._captured[name] = path.open("rb")
        self._worker.written()  # what a worker that was started said while it collected

    def ask(self, *request: Any, on_part: Callable[[Any], None] | None = None) -> Answer | Lost:
        """What ``Isolated`` answers in the worker."""
        if self.lost is None and self._worker is not None:
            self.lost = Lost("was interrupted", "")  # by Ctrl-C; any answer takes it back
            answer = self._worker.ask(request, self._limit, on_part)
            self.lost = answer if isinstance(answer, Lost) else None
            return answer
        assert self.lost is not None
        return self.lost

    def written(self) -> str:
        """What was written past the capture since the last request."""
        return self._worker.written() if self._worker is not None else ""

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
        if self._worker is not None:
            self._worker.end()


def _pass_on_warning(item: pytest.Item, data: dict[str, Any]) -> None:
    module, name = data["category"]
    category = getattr(sys.modules.get(module), name, None)
    try:
        message = category(data["message"])  # type: ignore[misc]
        if not isinstance(message, Warning):
            raise TypeError
    except Exception:  # a class that only the worker has, or that takes other arguments
        message = UserWarning(f"{name}: {data['message']}")
    record_warning(item.ihook, message, data["filename"], data["lineno"], "runtest", data["nodeid"])


def record_warning(hook: Any, message: Warning, filename: str, lineno: int, when: str, nodeid: str) -> None:
    """Has a warning reported; to warn would be an error where warnings are errors."""
    recorded = warnings.WarningMessage(message, type(message), filename, lineno)
    hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": recorded, "when": when, "nodeid": nodeid, "location": None}
    )
