# SPDX-License-Identifier: BSD-3-Clause
"""Which operators run on the device, called by us, by other operators or by a gradient."""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterator

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile

from . import subject
from .outcome import ON_DEVICE


@contextlib.contextmanager
def operators(wanted: bool = True) -> Iterator[set[str]]:
    """A set that holds, after the block, the names "aten::add.Tensor" of all operators that ran on the device in it.

    Operators that a fallback runs on the CPU do not count, nor the one that fell back.
    """
    seen: set[str] = set()
    if not wanted:
        yield seen
        return
    with profile(use_cpu=True, experimental_config=_ExperimentalConfig(capture_overload_names=True)) as profiler:
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


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Nothing of this thread is recorded in the block: some of PyTorch's own samples are a million operators."""
    torch.autograd._enable_record_function(False)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.autograd._enable_record_function(True)  # type: ignore[attr-defined]


class Spans:
    """Stretches of time that do not overlap, or lie within each other."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self.spans = sorted(spans)
        self.starts = [start for start, _ in self.spans]

    def holds(self, moment: int) -> bool:
        index = bisect.bisect_right(self.starts, moment) - 1
        return index >= 0 and moment <= self.spans[index][1]
