# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program on the openreg device, where it computes real values, and schedules it in a described chip's time.

An observer notes what the program tells the device: tasks, waits of streams, waits of the host, replays of graphs. Each
task belongs to the operator that launched it, whose cost is that of the description. So the schedule has the program's
own order, and the chip's times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from openreg_predict.cost import cost_of
from openreg_predict.description import Description
from openreg_predict.schedule import COMPUTE, Timeline
from openreg_predict.trace import Call, Memory, Recorder
from openreg_predict.work import Work

if TYPE_CHECKING:
    from openreg_predict import _C

COPY_IN, COPY_OUT = "copy in", "copy out"
# orTaskKind
_KERNEL = 0
_WORK = (_KERNEL, 2, 3)  # copies and fills besides


@dataclass
class Run:
    """A program that ran on the device, in a chip's time. ``seconds`` is when host and engines are done."""

    chip: Description
    seconds: float = 0.0
    host_seconds: float = 0.0
    timeline: Timeline = field(default_factory=Timeline)
    calls: list[Call] = field(default_factory=list)
    peak: int = 0

    def without_rule(self) -> list[str]:
        """Operators that no rule describes."""
        return sorted({call.name for call in self.calls if not call.work.has_rule})


@contextmanager
def simulate(chip: Description) -> Iterator[Run]:
    """Runs what is inside on the openreg device; the :class:`Run` is complete afterwards.

    The values are the device's own and are not changed. The host's time is what the description says of a launch, not
    that of this machine; work of the host between launches takes none.
    """
    from openreg_predict import _C

    run = Run(chip)
    memory = Memory("openreg")
    recorder = Recorder(memory, enter=_C.enter_call)
    torch.accelerator.synchronize()
    log = _C.TaskLog()
    try:
        with recorder:
            yield run
    finally:
        entries = log.take()
        log.stop()
    run.calls, run.peak = recorder.calls, memory.peak
    _Replay(run).tell(entries)
    run.seconds, run.host_seconds = run.timeline.finish(), run.timeline.host


class _Replay:
    """Tells a timeline what the observer saw."""

    def __init__(self, run: Run) -> None:
        self._run, self._chip, self._timeline = run, run.chip, run.timeline
        self._launched: set[int] = set()
        # Of a queue: (ticket, entry of the timeline), both growing.
        self._places: dict[int, list[tuple[int, int]]] = {}

    def tell(self, entries: list[_C.Entry]) -> None:
        """All that was seen, in order."""
        captured = self._captured({entry[1] for entry in entries})
        for launch, group in itertools.groupby(entries, key=lambda entry: entry[7]):
            if launch:
                self._graph(list(group), captured)
            else:
                for entry in group:
                    self._one(entry)

    def _one(self, entry: _C.Entry) -> None:
        kind, call, task, _, queue, ticket, size, _, waiting, name = entry
        if kind == "wait":
            self._timeline.wait(waiting, self._place(queue, ticket))
        elif kind == "host waits for place":
            self._timeline.synchronise(self._place(queue, ticket))
        elif kind == "host waits for device":
            self._timeline.synchronise_device()
        elif call >= 0 and call not in self._launched:  # further kernels of an operator are part of its cost
            self._launched.add(call)
            self._launch(self._run.calls[call], queue, ticket, self._chip.launch_host.value)
        elif call < 0 and task in _WORK:
            work = _without_operator(task, size)
            self._launch(Call(name or "copy", work, "Global", False), queue, ticket, self._chip.launch_host.value)
        elif call in self._launched and queue in self._places:
            self._places[queue].append((ticket, self._places[queue][-1][1]))

    def _captured(self, seen: set[int]) -> list[list[Call]]:
        """Calls whose operators enqueued nothing, because a stream captured them: one list per stretch of them."""
        stretches: list[list[Call]] = [[]]
        for index, call in enumerate(self._run.calls):
            if call.work.kernels and not call.is_on_host:
                if index in seen:
                    stretches.append([])
                else:
                    stretches[-1].append(call)
        return [stretch for stretch in stretches if stretch]

    def _graph(self, entries: list[_C.Entry], captured: list[list[Call]]) -> None:
        """A launch of a graph: the calls of the capture whose operands are nearest in size, in its streams."""
        size = sum(entry[6] for entry in entries)
        calls = min(captured, key=lambda item: abs(sum(call.work.size for call in item) - size), default=[])
        host, done = self._chip.launch_host.value, 0
        for kind, _, task, _, queue, ticket, size, _, waiting, name in entries:
            if kind == "wait":
                self._timeline.wait(waiting, self._place(queue, ticket))
                continue
            if kind != "task" or task not in _WORK:
                continue
            found = next((i for i in range(done, len(calls)) if _kernel(calls[i].name) == _kernel(name)), None)
            if found is None and not calls:
                calls_now = [Call(name or "copy", _without_operator(task, size), "Global", False)]
            else:
                calls_now = calls[done : found + 1] if found is not None else []
                done += len(calls_now)
            for call in calls_now:
                self._launch(call, queue, ticket, host, in_graph=True)
                host = 0.0  # one launch for all of the graph
        for call in calls[done:]:
            self._launch(call, entries[-1][4], entries[-1][5], host, in_graph=True)
            host = 0.0

    def _launch(self, call: Call, queue: int, ticket: int, host: float, in_graph: bool = False) -> None:
        if call.work.kernels == 0:
            return
        cost = cost_of(self._chip, call.work, in_graph)
        number = self._timeline.launch(call.name, queue, cost.seconds, self._engine(call), host)
        self._places.setdefault(queue, []).append((ticket, number))

    def _engine(self, call: Call) -> str:
        if call.work.link != "host" or self._chip.copy_engines == 0:
            return COMPUTE
        return COPY_OUT if call.leaves_device and self._chip.copy_engines > 1 else COPY_IN

    def _place(self, queue: int, ticket: int) -> int | None:
        """The newest entry of a queue that is not after a ticket."""
        return next((number for seen, number in reversed(self._places.get(queue, ())) if seen <= ticket), None)


def _kernel(name: str) -> str:
    """The kernel of an operator: its form in place has the same."""
    return name.removesuffix("_")


def _without_operator(task: int, size: int) -> Work:
    """A task that no operator launched, as a generated kernel: by the bytes of its operands."""
    return Work("copy" if task != _KERNEL else "elementwise", size=size, has_rule=task != _KERNEL)
