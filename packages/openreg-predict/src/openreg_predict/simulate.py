# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program on the openreg device, where it computes real values, in the simulated time of a described chip.

The device's clock shows the chip's time (openreg.h, orSubscribeTime). Events, waits of streams and of the host, graphs
and profilers use that clock, so they show the chip's times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from openreg_predict.cost import cost_of
from openreg_predict.description import Description
from openreg_predict.schedule import COMPUTE, ExecutedTask, Schedule
from openreg_predict.trace import Memory, OperatorCall, Recorder
from openreg_predict.work import OperatorWork

if TYPE_CHECKING:
    from openreg_predict import _C

# The names of engines, and of the place of a task that needs none.
COPY_IN, COPY_OUT, LINK, NONE = "copy in", "copy out", "link", "none"
# The position of an engine is its index in the native module.
_ENGINES = (COMPUTE, COPY_IN, COPY_OUT)
# Values of orTaskKind in openreg.h, and the names of kinds that a timeline shows.
_KERNEL, _DELAY, _SEMAPHORE_WAIT = 0, 4, 7
_SHOWN = {_KERNEL: "kernel", 1: "host function", 2: "copy", 3: "fill", _DELAY: "pause"}


@dataclass
class Run:
    """A report of a program that ran on the device in a chip's time.

    ``seconds`` is the time at which host and engines finish, ``host_seconds`` that at which the host finishes. Both
    count from the start of the simulation. ``timeline`` has the begin and end of each task.
    """

    chip: Description
    seconds: float = 0.0
    host_seconds: float = 0.0
    timeline: Schedule = field(default_factory=Schedule)
    calls: list[OperatorCall] = field(default_factory=list)
    peak: int = 0
    generated: list[str] = field(default_factory=list)  # kernels that no operator launched

    def without_rule(self) -> list[str]:
        """Returns the names of unknown operators, which have no rule for their work, and of kernels without operator.

        Their cost follows from the bytes of their operands.
        """
        return sorted({call.name for call in self.calls if not call.work.is_known} | set(self.generated))


class _SimulationRecorder(Recorder):  # type: ignore[no-untyped-call]  # of TorchDispatchMode, for a subclass
    """A recorder that sets, in the time source, the current call of each thread and the cost of each call."""

    def __init__(self, memory: Memory, chip: Description, time_source: _C.ChipTimeSource) -> None:
        super().__init__(memory)
        self._chip, self._time_source = chip, time_source

    def before_call(self, index: int, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        from openreg_predict import _C

        # The operator may wait for its tasks before its results exist, so a first cost follows from the operands alone.
        try:
            self._set_cost(index, self.describe(func, args, kwargs, ()))
        except (IndexError, ValueError, TypeError):
            self._set_cost(index, self.calls[index])
        _C.enter_call(index)

    def after_call(self, index: int) -> None:
        del index
        from openreg_predict import _C

        _C.enter_call(-1)

    def after_describe(self, index: int) -> None:
        self._set_cost(index, self.calls[index])

    def _set_cost(self, index: int, call: OperatorCall) -> None:
        """Sets the cost of a call's tasks. Unexpected tasks of a call without kernels get the default cost per byte."""
        alone, in_graph = (cost_of(self._chip, call.work, in_graph).seconds for in_graph in (False, True))
        uses_engine = call.work.kernels > 0 and not call.is_on_host
        engine = self._engine(call) if uses_engine else -1
        is_collective = call.work.link == "peer"
        self._time_source.set_cost(index, round(alone * 1e9), round(in_graph * 1e9), engine, is_collective)

    def _engine(self, call: OperatorCall) -> int:
        """Returns the position in _ENGINES of the engine that runs the tasks of a call."""
        if call.work.link != "host" or self._chip.copy_engines == 0:
            return 0
        return 2 if call.leaves_device and self._chip.copy_engines > 1 else 1


def _time_source(chip: Description) -> _C.ChipTimeSource:
    """Returns a time source with the default costs of a chip."""
    from openreg_predict import _C

    megabyte = 2**20

    def per_byte(work: OperatorWork, fixed: float) -> float:  # nanoseconds
        return max(0.0, cost_of(chip, work).seconds - fixed) * 1e9 / megabyte

    link = chip.links.get("host")
    latency = link.latency.value if link is not None else 0.0
    return _C.ChipTimeSource(
        host_launch=round(chip.launch_host.value * 1e9),
        launch=round(chip.launch_device.value * 1e9),
        link_latency=round(latency * 1e9),
        memory_time=per_byte(OperatorWork("elementwise", size=megabyte), chip.launch_device.value),
        link_time=per_byte(OperatorWork("copy", size=megabyte, link="host"), latency),
        copy_engine=min(1, chip.copy_engines),
        engines=len(_ENGINES),
    )


@contextmanager
def simulate(chip: Description) -> Iterator[Run]:
    """Runs the context's program on the openreg devices in a chip's time. The :class:`Run` is complete afterwards.

    The device computes real values. Each launch takes the host time of the description, and host code between launches
    takes no time. Raises RuntimeError if another simulation runs or OPENREG_SCHEDULE_SEED is set.
    """
    run = Run(chip)
    memory = Memory("openreg")
    time_source = _time_source(chip)
    recorder = _SimulationRecorder(memory, chip, time_source)
    torch.accelerator.synchronize()  # initializes the device, so that its start is not part of the simulation
    time_source.start()
    try:
        with recorder:
            yield run
    finally:
        time_source.stop()
        run.calls, run.peak = recorder.calls, memory.peak
        _fill(run, time_source)


def _fill(run: Run, time_source: _C.ChipTimeSource) -> None:
    """Writes the times that a stopped time source has recorded to the report."""
    zero = time_source.begin()
    host: list[tuple[int, int, str]] = [(time, time, "") for time in time_source.waits()]
    for call, kind, device, queue, _, _, name, host_time, engine, launched, begin, end in time_source.entries():
        own = run.calls[call].name if call >= 0 else name or _SHOWN.get(kind, "")
        if host_time:
            host.append((launched - host_time, launched, own))
        is_message = kind == _SEMAPHORE_WAIT and call >= 0
        if kind in _SHOWN or is_message:
            where = LINK if is_message else _ENGINES[engine] if engine >= 0 else NONE
            first, taken, done = ((time - zero) * 1e-9 for time in (launched, begin, end))
            run.timeline.slices.append(ExecutedTask(own, queue, where, first, taken, done, device))
        if kind == _KERNEL and call < 0:
            run.generated.append(name)
    run.timeline.slices.sort(key=lambda item: (item.begin, item.launched))
    run.timeline.host_slices = _host_slices(host, zero)
    run.host_seconds = max([0.0, *(end for _, _, end in run.timeline.host_slices)])
    run.seconds = max([run.host_seconds, *(item.end for item in run.timeline.slices)])


def _host_slices(found: list[tuple[int, int, str]], zero: int) -> list[tuple[str, float, float]]:
    """Returns the launches of the host, and a wait for each gap between them, because other host code takes no time."""
    slices = []
    now = zero
    for begin, end, name in sorted(found):
        if begin > now:
            slices.append(("wait", (now - zero) * 1e-9, (begin - zero) * 1e-9))
        if end > begin:
            slices.append((name, (begin - zero) * 1e-9, (end - zero) * 1e-9))
        now = max(now, end)
    return slices
