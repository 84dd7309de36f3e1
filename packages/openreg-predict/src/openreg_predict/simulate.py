# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program on the openreg device, where it computes real values, in a described chip's time.

The device's own clock is the chip's (openreg.h, orSubscribeTime): so events, streams that wait, the host that waits,
graphs, and whatever else looks at the device, as a profile does, see the chip's times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from openreg_predict.cost import cost_of
from openreg_predict.description import Description
from openreg_predict.schedule import COMPUTE, Schedule, Slice
from openreg_predict.trace import Call, Memory, Recorder
from openreg_predict.work import Work

if TYPE_CHECKING:
    from openreg_predict import _C

COPY_IN, COPY_OUT, LINK, NONE = "copy in", "copy out", "link", "none"
# By their number in the native part.
_ENGINES = (COMPUTE, COPY_IN, COPY_OUT)
# orTaskKind
_KERNEL, _DELAY, _SEMAPHORE_WAIT = 0, 4, 7
_SHOWN = {_KERNEL: "kernel", 1: "host function", 2: "copy", 3: "fill", _DELAY: "pause"}


@dataclass
class Run:
    """A program that ran on the device, in a chip's time.

    ``seconds`` is when host and engines are done, ``host_seconds`` when the host is, ``timeline`` when what ran.
    """

    chip: Description
    seconds: float = 0.0
    host_seconds: float = 0.0
    timeline: Schedule = field(default_factory=Schedule)
    calls: list[Call] = field(default_factory=list)
    peak: int = 0
    generated: list[str] = field(default_factory=list)  # kernels that no operator launched

    def without_rule(self) -> list[str]:
        """Operators that no rule describes, and kernels of no operator; they cost what the bytes of operands cost."""
        return sorted({call.name for call in self.calls if not call.work.has_rule} | set(self.generated))


class _Recorder(Recorder):  # type: ignore[no-untyped-call]  # of TorchDispatchMode, for a subclass
    """A recorder that reports to the time source which call a thread executes, and what the call costs."""

    def __init__(self, memory: Memory, chip: Description, time_source: _C.ChipTimeSource) -> None:
        super().__init__(memory)
        self._chip, self._time_source = chip, time_source

    def begin(self, number: int, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        from openreg_predict import _C

        try:  # what the results say, the device has to do without, should the host wait in the middle of the call
            self._set_cost(number, self.describe(func, args, kwargs, ()))
        except (IndexError, ValueError, TypeError):
            self._set_cost(number, self.calls[number])
        _C.enter_call(number)

    def end(self, number: int) -> None:
        del number
        from openreg_predict import _C

        _C.enter_call(-1)

    def described(self, number: int) -> None:
        self._set_cost(number, self.calls[number])

    def _set_cost(self, number: int, call: Call) -> None:
        """A call that should launch nothing and does costs what the bytes of its tasks cost."""
        alone, in_graph = (cost_of(self._chip, call.work, in_graph).seconds for in_graph in (False, True))
        is_known = call.work.kernels > 0 and not call.is_on_host
        engine = self._engine(call) if is_known else -1
        is_collective = call.work.link == "peer"
        self._time_source.set_cost(number, round(alone * 1e9), round(in_graph * 1e9), engine, is_collective)

    def _engine(self, call: Call) -> int:
        if call.work.link != "host" or self._chip.copy_engines == 0:
            return 0
        return 2 if call.leaves_device and self._chip.copy_engines > 1 else 1


def _time_source(chip: Description) -> _C.ChipTimeSource:
    from openreg_predict import _C

    megabyte = 2**20

    def per_byte(work: Work, fixed: float) -> float:
        return max(0.0, cost_of(chip, work).seconds - fixed) * 1e9 / megabyte

    link = chip.links.get("host")
    latency = link.latency.value if link is not None else 0.0
    return _C.ChipTimeSource(
        host_launch=round(chip.launch_host.value * 1e9),
        launch=round(chip.launch_device.value * 1e9),
        link_latency=round(latency * 1e9),
        memory_time=per_byte(Work("elementwise", size=megabyte), chip.launch_device.value),
        link_time=per_byte(Work("copy", size=megabyte, link="host"), latency),
        copy_engine=min(1, chip.copy_engines),
        engines=len(_ENGINES),
    )


@contextmanager
def simulate(chip: Description) -> Iterator[Run]:
    """Runs what is inside on the openreg devices in a chip's time; the :class:`Run` is complete afterwards.

    The values are the device's own. The host's time is what the description says of a launch, not that of this machine;
    what it does between launches takes none. Raises RuntimeError where another simulation runs or OPENREG_SCHEDULE_SEED
    is set.
    """
    run = Run(chip)
    memory = Memory("openreg")
    time_source = _time_source(chip)
    recorder = _Recorder(memory, chip, time_source)
    torch.accelerator.synchronize()  # brings the device up
    time_source.start()
    try:
        with recorder:
            yield run
    finally:
        time_source.stop()
        run.calls, run.peak = recorder.calls, memory.peak
        _fill(run, time_source)


def _fill(run: Run, time_source: _C.ChipTimeSource) -> None:
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
            run.timeline.slices.append(Slice(own, queue, where, first, taken, done, device))
        if kind == _KERNEL and call < 0:
            run.generated.append(name)
    run.timeline.slices.sort(key=lambda item: (item.begin, item.launched))
    run.timeline.host_slices = _host_slices(host, zero)
    run.host_seconds = max([0.0, *(end for _, _, end in run.timeline.host_slices)])
    run.seconds = max([run.host_seconds, *(item.end for item in run.timeline.slices)])


def _host_slices(found: list[tuple[int, int, str]], zero: int) -> list[tuple[str, float, float]]:
    """Launches, and between them the waits: the host does nothing else that takes time."""
    slices = []
    now = zero
    for begin, end, name in sorted(found):
        if begin > now:
            slices.append(("wait", (now - zero) * 1e-9, (begin - zero) * 1e-9))
        if end > begin:
            slices.append((name, (begin - zero) * 1e-9, (end - zero) * 1e-9))
        now = max(now, end)
    return slices
