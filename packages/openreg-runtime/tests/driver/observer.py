# SPDX-License-Identifier: BSD-3-Clause
"""A subscription whose callbacks record what the device reports."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_void_p
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from .device_api import Api
from .device_header import (
    CALLBACKS,
    SUBSCRIBE_OPERANDS,
    SUBSCRIBER_VERSION,
    Access,
    MemoryAction,
    Operand,
    Subscriber,
    SyncKind,
    TaskKind,
)


def copied(info: Any) -> SimpleNamespace:
    """The fields of a structure, which is gone when the callback returns."""
    return SimpleNamespace(**{name: getattr(info, name) for name, *_ in info._fields_})


def operands(*ranges: tuple[int, int, Access]) -> Any:
    """An array of orOperand."""
    return (Operand * len(ranges))(*ranges)


@dataclass
class Observer:
    """All callbacks, or those named; `renumber` gives the correlation ids that come back."""

    api: Api
    names: tuple[str, ...] = tuple(CALLBACKS)
    flags: int = SUBSCRIBE_OPERANDS
    renumber: Callable[[int], int] = lambda number: number
    duration: Callable[[SimpleNamespace], int | None] = lambda _task: None
    engine: Callable[[SimpleNamespace], int] = lambda _task: 0
    host: Callable[[SimpleNamespace], int] = lambda _task: 0
    submits: list[SimpleNamespace] = field(default_factory=list)
    completes: list[SimpleNamespace] = field(default_factory=list)
    syncs: list[SimpleNamespace] = field(default_factory=list)
    memories: list[SimpleNamespace] = field(default_factory=list)
    captures: list[SimpleNamespace] = field(default_factory=list)

    def __post_init__(self) -> None:
        ours = {"submit": self._submit, "complete": self._complete, "sync": self._sync, "memory": self._memory}
        asked = {"duration": self._duration, "engine": self._engine, "host": self._host}
        callbacks = {**ours, **asked, "capture": self._capture}
        self.table = Subscriber(ctypes.sizeof(Subscriber), SUBSCRIBER_VERSION, self.flags)
        for name in self.names:
            setattr(self.table, name, self.api.address(CALLBACKS[name](callbacks[name])))
        handle = c_void_p()
        self.api.call("orSubscribe", ctypes.byref(self.table), None, ctypes.byref(handle))
        self.handle = handle.value

    def end(self) -> None:
        """Unsubscribe; then each submit has exactly one complete."""
        self.api.call("orUnsubscribe", self.handle)
        seen = sorted(self.renumber(task.correlation) for task in self.submits)
        if {"submit", "complete"} <= set(self.names):
            assert sorted(task.correlation for task in self.completes) == seen

    def complete_of(self, submit: SimpleNamespace) -> SimpleNamespace:
        """What became of a task."""
        (found,) = [task for task in self.completes if task.correlation == self.renumber(submit.correlation)]
        return found

    def kinds(self) -> list[str]:
        """The kinds of what was submitted, in order."""
        return [TaskKind(task.kind).name.removeprefix("orTask") for task in self.submits]

    def _submit(self, _user: int | None, info: Any, correlation: Any) -> None:
        task = copied(info.contents)
        count, ranges = task.operand_count, task.operands
        task.operands = (
            [(ranges[i].address, ranges[i].size, Access(ranges[i].access)) for i in range(count)] if ranges else None
        )
        assert correlation[0] == task.correlation
        correlation[0] = self.renumber(task.correlation)
        self.submits.append(task)

    def _complete(self, _user: int | None, info: Any) -> None:
        self.completes.append(copied(info.contents))

    def _sync(self, _user: int | None, info: Any) -> None:
        sync = copied(info.contents)
        sync.kind = SyncKind(sync.kind).name.removeprefix("orSync")
        self.syncs.append(sync)

    def _memory(self, _user: int | None, info: Any) -> None:
        memory = copied(info.contents)
        memory.action = MemoryAction(memory.action).name.removeprefix("orMemory")
        self.memories.append(memory)

    def _capture(self, _user: int | None, info: Any) -> None:
        self.captures.append(copied(info.contents))

    def _engine(self, _user: int | None, info: Any) -> int:
        return self.engine(copied(info.contents))

    def _host(self, _user: int | None, info: Any) -> int:
        return self.host(copied(info.contents))

    def _duration(self, _user: int | None, info: Any, nanoseconds: Any) -> int:
        answer = self.duration(copied(info.contents))
        if answer is None:
            return 0
        nanoseconds[0] = answer
        return 1
