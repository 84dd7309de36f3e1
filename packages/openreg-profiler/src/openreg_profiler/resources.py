# SPDX-License-Identifier: BSD-3-Clause
"""Computes the use of engines, streams, copies and memory, as numbers, as tables, and as counters in the trace.

The only input is a trace. Times are in microseconds, sizes in bytes, and utilizations between 0 and 1.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from openreg_profiler.trace import Slice, TraceFile

# The number of equal intervals of time for which the utilization of an engine is computed.
BINS = 50


@dataclass(frozen=True)
class EngineUtilization:
    """One engine: its number of tasks, busy time, and the fractions of the span and of each bin in which it is busy."""

    name: str
    tasks: int
    busy: float
    utilization: float
    over_time: list[float]


@dataclass(frozen=True)
class StreamTime:
    """A stream, with its busy, waiting and idle time between the first and the last task of all devices."""

    device: int
    name: str
    tasks: int
    busy: float
    waiting: float
    idle: float


@dataclass(frozen=True)
class Copies:
    """The copies or fills of one kind, such as from host to device, with their bytes and their time."""

    name: str
    count: int
    size: int
    time: float


@dataclass(frozen=True)
class Collectives:
    """The collectives of one kind. Their time begins when the operands are ready and ends with the last message."""

    name: str
    count: int
    time: float


@dataclass(frozen=True)
class Peak:
    """An operator or module, with the largest growth of allocated device memory since the beginning of a call."""

    name: str
    kind: str
    calls: int
    growth: int


@dataclass(frozen=True)
class Resources:
    """The use of all resources in a trace. ``span`` is the time from the first to the last task.

    ``peak_memory`` is the most allocated memory of each device.
    """

    span: float
    engines: list[EngineUtilization]
    streams: list[StreamTime]
    copies: list[Copies]
    collectives: list[Collectives]
    peaks: list[Peak]
    peak_memory: dict[int, int]

    def to_json(self) -> str:
        """Returns the fields and their names as JSON."""
        return json.dumps(asdict(self), indent=1)


def merged(slices: Iterable[Slice]) -> list[tuple[float, float]]:
    """Returns the intervals in which at least one slice runs."""
    result: list[tuple[float, float]] = []
    for begin, end in sorted((item.begin, item.end) for item in slices):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((begin, end))
    return result


def measure(trace: TraceFile, bins: int = BINS) -> Resources:
    """Computes the resources of a trace.

    Memory requires a profile with ``profile_memory=True``; modules require ``with_stack=True``.
    """
    tasks = [*trace.work, *trace.waits]
    begin, end = min(item.begin for item in tasks), max(item.end for item in tasks)
    span = end - begin
    return Resources(
        span=span,
        engines=_engines(trace, begin, span, bins),
        streams=_streams(trace, span),
        copies=_copies(trace),
        collectives=_collectives(trace),
        peaks=_peaks(trace),
        peak_memory=_peak_memory(trace),
    )


def _engines(trace: TraceFile, begin: float, span: float, bins: int) -> list[EngineUtilization]:
    work: dict[str, list[Slice]] = defaultdict(list)
    for item in trace.work:
        if "engine" in item.args:
            work[item.args["engine"]].append(item)
    result = []
    for name, items in sorted(work.items()):
        stretches = merged(items)
        busy = sum(to - since for since, to in stretches)
        over_time = _over_time(stretches, begin, span, bins)
        result.append(EngineUtilization(name, len(items), busy, busy / span if span else 0.0, over_time))
    return result


def _over_time(stretches: list[tuple[float, float]], begin: float, span: float, bins: int) -> list[float]:
    """Returns the part of each bin that the stretches cover."""
    width = span / bins
    covered = [0.0] * bins
    if width <= 0:
        return covered
    for since, to in stretches:
        first, last = int((since - begin) / width), int((to - begin) / width)
        for index in range(max(first, 0), min(last, bins - 1) + 1):
            left = begin + index * width
            covered[index] += max(0.0, min(to, left + width) - max(since, left))
    return [min(1.0, part / width) for part in covered]


def _streams(trace: TraceFile, span: float) -> list[StreamTime]:
    result = []
    for (device, number), stream in sorted(trace.streams.items()):
        work, waits = (
            [item for item in items if (item.process, item.track) == (device, number)]
            for items in (trace.work, trace.waits)
        )
        busy, waiting = (sum(to - since for since, to in merged(items)) for items in (work, waits))
        idle = max(0.0, span - busy - waiting)
        result.append(StreamTime(device, stream.name, len(work), busy, waiting, idle))
    return result


def _copies(trace: TraceFile) -> list[Copies]:
    kinds: dict[str, list[Slice]] = defaultdict(list)
    for item in trace.work:
        if item.category != "kernel":
            kinds[item.name].append(item)
    return [
        Copies(name, len(items), sum(int(item.args["bytes"]) for item in items), sum(item.duration for item in items))
        for name, items in sorted(kinds.items())
    ]


def _collectives(trace: TraceFile) -> list[Collectives]:
    kinds: dict[str, list[Slice]] = defaultdict(list)
    for item in trace.work:
        if item.is_collective:
            kinds[item.name].append(item)
    return [
        Collectives(name, len(items), sum(item.duration for item in items)) for name, items in sorted(kinds.items())
    ]


def _peak_memory(trace: TraceFile) -> dict[int, int]:
    peaks: dict[int, int] = {}
    for item in trace.memory:
        peaks[item.device] = max(peaks.get(item.device, 0), item.allocated)
    return peaks


def _peaks(trace: TraceFile) -> list[Peak]:
    """Returns the growth of each operator and module; growth in a call also counts for its callers, as time does."""
    growth: dict[tuple[str, str], int] = defaultdict(int)
    calls: dict[tuple[str, str], int] = defaultdict(int)
    threads: dict[tuple[Any, Any], list[Slice]] = defaultdict(list)
    for item in trace.host:
        if item.category == "cpu_op" or item.name.startswith("nn.Module: "):
            threads[item.process, item.track].append(item)
    for thread, slices in threads.items():
        _sweep(trace, thread, slices, growth, calls)
    found = [Peak(name, kind, calls[kind, name], size) for (kind, name), size in growth.items() if size > 0]
    return sorted(found, key=lambda peak: (-peak.growth, peak.name))


def _sweep(
    trace: TraceFile,
    thread: tuple[Any, Any],
    slices: list[Slice],
    growth: dict[tuple[str, str], int],
    calls: dict[tuple[str, str], int],
) -> None:
    """Walks along one thread with a stack of the open calls and the memory of each device at their beginnings."""
    points: list[tuple[float, int, Any]] = [(item.begin, 0, item) for item in slices]
    points += [(item.time, 1, item) for item in trace.memory]  # also of other threads, because they change the level
    points.sort(key=lambda point: point[:2])
    level: dict[int, int] = {}
    stack: list[tuple[Slice, dict[int, int]]] = []
    for time, is_memory, item in points:
        while stack and stack[-1][0].end < time:
            stack.pop()
        if not is_memory:
            name = item.name.removeprefix("nn.Module: ")
            calls["operator" if item.category == "cpu_op" else "module", name] += 1
            stack.append((item, dict(level)))
            continue
        if item.thread == thread:
            for running, before in stack:
                kind = "operator" if running.category == "cpu_op" else "module"
                key = (kind, running.name.removeprefix("nn.Module: "))
                # A call that began before the device's first memory event has no recorded level for that device. The
                # level then was that event's total minus its change.
                unknown = level.get(item.device, item.allocated - item.change)
                more = item.allocated - before.get(item.device, unknown)
                growth[key] = max(growth[key], more)
        if item.device not in level:
            for _, before in stack:
                before.setdefault(item.device, item.allocated - item.change)
        level[item.device] = item.allocated


def show(resources: Resources, console: Console | None = None, rows: int = 10) -> None:
    """Prints the resources as tables."""
    console = console or Console()
    console.print(f"The devices worked for {resources.span / 1000:.3f} ms, from the first task to the last.")
    engines = Table("engine", "tasks", "busy ms", "utilization", title="Engines")
    for engine in resources.engines:
        engines.add_row(engine.name, str(engine.tasks), f"{engine.busy / 1000:.3f}", f"{engine.utilization:.1%}")
    streams = Table("device", "stream", "tasks", "busy ms", "waiting ms", "idle ms", title="Streams")
    for stream in resources.streams:
        times = (f"{value / 1000:.3f}" for value in (stream.busy, stream.waiting, stream.idle))
        streams.add_row(f"openreg:{stream.device}", stream.name, str(stream.tasks), *times)
    copies = Table("copy or fill", "count", "bytes", "ms", title="Copies and fills")
    for kind in resources.copies:
        copies.add_row(kind.name, str(kind.count), f"{kind.size:,}", f"{kind.time / 1000:.3f}")
    collectives = Table("collective", "count", "ms", title="Collectives")
    for item in resources.collectives:
        collectives.add_row(item.name, str(item.count), f"{item.time / 1000:.3f}")
    peaks = Table("operator or module", "calls", "bytes at most", title="Growth of device memory in a call")
    for peak in resources.peaks[:rows]:
        peaks.add_row(peak.name, str(peak.calls), f"{peak.growth:,}")
    for table in (engines, streams, copies, collectives, peaks):
        if table.row_count:
            console.print(table)
    for device, size in sorted(resources.peak_memory.items()):
        console.print(f"openreg:{device} had at most {size:,} bytes allocated.")


def with_counters(trace: TraceFile, bins: int = BINS) -> dict[str, Any]:
    """Returns the trace's document with counters of the utilization of each engine and the memory of each device."""
    tasks = [*trace.work, *trace.waits]
    begin, end = min(item.begin for item in tasks), max(item.end for item in tasks)
    width = (end - begin) / bins
    events = []
    for engine in measure(trace, bins).engines:
        for index, part in enumerate([*engine.over_time, 0.0]):
            # A counter keeps its value until its next event.
            events.append(_counter(0, begin + index * width, "busy %", engine.name, round(100 * part, 1)))
    for item in trace.memory:
        events.append(_counter(item.device, item.time, "memory", "allocated bytes", item.allocated))
        events.append(_counter(item.device, item.time, "memory", "reserved bytes", item.reserved))
    return {**trace.document, "traceEvents": [*trace.document["traceEvents"], *events]}


def _counter(process: int, time: float, name: str, series: str, value: float) -> dict[str, Any]:
    return {"ph": "C", "cat": "counter", "name": name, "pid": process, "tid": 0, "ts": time, "args": {series: value}}


def write_counters(trace: TraceFile, path: str | Path, bins: int = BINS) -> None:
    """Writes the trace with counters. Raises OSError if the file cannot be written."""
    Path(path).write_text(json.dumps(with_counters(trace, bins)), "utf-8")
