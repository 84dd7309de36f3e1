# SPDX-License-Identifier: BSD-3-Clause
"""Records the operators that run on the device, including those that composite operators and gradients call."""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile, record_function

from . import device_under_test

ON_DEVICE = "conformance: on the device"  # name of the profiler range around calls on the device


@contextlib.contextmanager
def operators(enabled: bool = True) -> Iterator[set[str]]:
    """Yields a set that contains, after the block, the operators that ran on the device, such as "aten::add.Tensor".

    Operators that fell back to the CPU, and those that their fallbacks called there, are left out. Without `enabled`,
    the set stays empty.
    """
    seen: set[str] = set()
    if not enabled:
        yield seen
        return
    config = _ExperimentalConfig(capture_overload_names=True)
    with profile(use_cpu=True, experimental_config=config) as profiler, Recording.off():
        yield seen
    fell_back = set(device_under_test.fallbacks())
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
    device_times, fallback_times = Intervals(on_device), Intervals(on_cpu)
    seen.update(name for start, name in events if device_times.contains(start) and not fallback_times.contains(start))


class Recording:
    """The switch of this thread's profiler ranges (RecordFunction).

    `operators()` profiles a whole block, such as all checks of an entry. Only the calls on the device matter in it. To
    record the others, which make samples, compare results and call the CPU, would take longer than the calls
    themselves. So the ranges are on only inside of `on_device()`.
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
        """Returns a context manager that stops recording, except inside of blocks of ``on_device()``."""
        return cls._set(False)

    @classmethod
    @contextlib.contextmanager
    def on_device(cls) -> Iterator[None]:
        """Records a block as one that runs on the device."""
        with cls._set(True), record_function(ON_DEVICE):
            yield


class Intervals:
    """A set of closed time intervals, which may overlap or contain each other."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        self.starts: list[int] = []  # of the merged intervals, which are disjoint, in ascending order
        self.ends: list[int] = []
        for start, end in sorted(intervals):
            if self.ends and start <= self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.starts.append(start)
                self.ends.append(end)

    def contains(self, moment: int) -> bool:
        """Returns True if a time lies in one of the intervals."""
        index = bisect.bisect_right(self.starts, moment) - 1
        return index >= 0 and moment <= self.ends[index]
