# SPDX-License-Identifier: BSD-3-Clause
"""Which operators run on the device, called by us, by other operators or by a gradient."""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterator

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile, record_function

from . import subject

ON_DEVICE = "conformance: on the device"  # marks the time spent there


@contextlib.contextmanager
def operators(wanted: bool = True) -> Iterator[set[str]]:
    """A set that holds, after the block, the names "aten::add.Tensor" of all operators that ran on the device in it.

    Operators that a fallback runs on the CPU do not count, nor the one that fell back.
    """
    seen: set[str] = set()
    if not wanted:
        yield seen
        return
    config = _ExperimentalConfig(capture_overload_names=True)
    with profile(use_cpu=True, experimental_config=config) as profiler, Recording.off():
        yield seen
    fell_back = set(subject.fallbacks(subject.device()))
    events = []
    on_device, on_cpu = [], []
    for event in profiler.kineto_results.events():
        name = f"{event.name()}.{event.overload_name()}" if event.overload_name() else event.name()
        if event.name() == ON_DEVICE:
            on_device.append((event.start_ns(), event.end_ns()))
        elif "::" in name:
            events.append((event.start_ns(), name))
            if name in fell_back:
                on_cpu.append((event.start_ns(), event.end_ns()))
    inside, outside = Spans(on_device), Spans(on_cpu)
    seen.update(name for start, name in events if inside.holds(start) and not outside.holds(start))


class Recording:
    """Whether PyTorch records what this thread does.

    To record samples, comparisons and calls on the CPU, too, would take longer than they do themselves.
    """

    on = True

    @classmethod
    @contextlib.contextmanager
    def _set(cls, on: bool) -> Iterator[None]:
        before = cls.on
        cls.on = on
        torch.autograd._enable_record_function(on)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            cls.on = before
            torch.autograd._enable_record_function(before)  # type: ignore[attr-defined]

    @classmethod
    def off(cls) -> contextlib.AbstractContextManager[None]:
        """For a block of which nothing is to be recorded but what ``on_device`` marks."""
        return cls._set(False)

    @classmethod
    @contextlib.contextmanager
    def on_device(cls) -> Iterator[None]:
        """For a block that runs on the device."""
        with cls._set(True), record_function(ON_DEVICE):
            yield


class Spans:
    """Stretches of time that do not overlap, or lie within each other."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self.spans = sorted(spans)
        self.starts = [start for start, _ in self.spans]

    def holds(self, moment: int) -> bool:
        index = bisect.bisect_right(self.starts, moment) - 1
        return index >= 0 and moment <= self.spans[index][1]
