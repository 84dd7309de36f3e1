# SPDX-License-Identifier: BSD-3-Clause
"""Discrete-event time: a host that launches, streams that keep order, engines that run one thing at a time.

All times are seconds since the program began. The host launches entries in the order of the program; an entry begins
when it was launched, what its stream had before is done, what its stream waits for is done, and its engine is free. Of
entries that could begin, an engine takes that which could begin first, and of two the one that was launched first.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMPUTE = "compute"
HOST = "host"


@dataclass(frozen=True)
class Slice:
    """Something that an engine did; ``stream`` is any number that no other stream of the schedule has."""

    name: str
    stream: int
    engine: str
    launched: float
    begin: float
    end: float
    device: int = 0


@dataclass
class Schedule:
    """What engines did, and when the host launched or waited: (what, begin, end)."""

    slices: list[Slice] = field(default_factory=list)
    host_slices: list[tuple[str, float, float]] = field(default_factory=list)


@dataclass
class _Entry:
    name: str
    engine: str
    seconds: float
    launched: float
    number: int
    waits: tuple[int, ...]  # numbers of entries that have to be done


class Timeline(Schedule):
    """Builds a schedule from the calls of a program, in order. For one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.host = 0.0
        self._queues: dict[int, deque[_Entry]] = {}
        self._last: dict[int, int] = {}  # of a stream: the number of its newest entry
        self._free: dict[str, float] = {}
        self._stream_free: dict[int, float] = {}
        self._ends: dict[int, float] = {}
        self._waiting: dict[int, list[int]] = {}
        self._next = 0

    def work_on_host(self, seconds: float, name: str = "host") -> None:
        """The host is busy."""
        if seconds > 0:
            self.host_slices.append((name, self.host, self.host + seconds))
        self.host += seconds

    def launch(self, name: str, stream: int, seconds: float, engine: str = COMPUTE, host: float = 0.0) -> int:
        """Adds an entry, after ``host`` seconds that the launch takes; gives its number."""
        self.work_on_host(host, name)
        number, self._next = self._next, self._next + 1
        waits = tuple(self._waiting.pop(stream, ()))
        self._queues.setdefault(stream, deque()).append(_Entry(name, engine, seconds, self.host, number, waits))
        self._last[stream] = number
        return number

    def record(self, stream: int) -> int | None:
        """The place that an event marks: the newest entry of a stream, None where there is none."""
        return self._last.get(stream)

    def wait(self, stream: int, place: int | None) -> None:
        """What is launched on the stream from now on begins after a place."""
        if place is not None:
            self._waiting.setdefault(stream, []).append(place)

    def synchronize(self, place: int | None) -> None:
        """The host waits for a place."""
        while place is not None and place not in self._ends:
            self._commit()
        if place is not None:
            begin, self.host = self.host, max(self.host, self._ends[place])
            if self.host > begin:
                self.host_slices.append(("wait", begin, self.host))

    def synchronize_device(self) -> None:
        """The host waits for all streams."""
        for place in list(self._last.values()):
            self.synchronize(place)

    def finish(self) -> float:
        """Runs what is left; the time at which host and engines are done."""
        while any(self._queues.values()):
            self._commit()
        return max([self.host, *(item.end for item in self.slices)])

    def end_of(self, number: int) -> float:
        """When an entry ended that has been run; see :meth:`finish`."""
        return self._ends[number]

    def _commit(self) -> None:
        """Runs the entry that can begin first. Streams wait for entries launched before, so there always is one."""
        best: tuple[float, int, int] | None = None
        for stream, queue in self._queues.items():
            if queue and all(place in self._ends for place in queue[0].waits):
                entry = queue[0]
                ready = [entry.launched, self._stream_free.get(stream, 0.0), self._free.get(entry.engine, 0.0)]
                start = max(ready + [self._ends[place] for place in entry.waits])
                best = min(best or (start, entry.number, stream), (start, entry.number, stream))
        assert best is not None
        start, _, stream = best
        entry = self._queues[stream].popleft()
        end = start + entry.seconds
        self._ends[entry.number] = self._stream_free[stream] = self._free[entry.engine] = end
        self.slices.append(Slice(entry.name, stream, entry.engine, entry.launched, start, end))


def busy(schedule: Schedule) -> Mapping[str, float]:
    """Seconds of work by engine, over all devices."""
    found: dict[str, float] = {}
    for item in schedule.slices:
        found[item.engine] = found.get(item.engine, 0.0) + item.end - item.begin
    return found


def write_trace(schedule: Schedule, path: str | Path, title: str) -> None:
    """Writes the schedule in Chrome's format, which Perfetto reads: a track per stream, one for the host, arrows.

    Raises OSError where the file cannot be written.
    """
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "host"}}]
    for device in sorted({item.device for item in schedule.slices}):
        name = f"{title}, device {device}" if device else title
        events.append({"ph": "M", "name": "process_name", "pid": device + 1, "args": {"name": name}})
    for device, stream in sorted({(item.device, item.stream) for item in schedule.slices}):
        shown = {"name": f"stream {stream}"}
        events.append({"ph": "M", "name": "thread_name", "pid": device + 1, "tid": stream, "args": shown})
    for what, begin, end in schedule.host_slices:
        events.append({"ph": "X", "name": what, "pid": 0, "tid": 0, "ts": begin * 1e6, "dur": (end - begin) * 1e6})
    for number, item in enumerate(schedule.slices):
        category = "kernel" if item.engine == COMPUTE else "gpu_memcpy"
        common = {"name": item.name, "cat": category, "pid": item.device + 1, "tid": item.stream}
        duration = (item.end - item.begin) * 1e6
        events.append({**common, "ph": "X", "ts": item.begin * 1e6, "dur": duration, "args": {"engine": item.engine}})
        arrow = {"name": "launch", "cat": "ac2g", "id": number}
        events.append({**arrow, "ph": "s", "pid": 0, "tid": 0, "ts": item.launched * 1e6})
        place = {"pid": item.device + 1, "tid": item.stream}
        events.append({**arrow, "ph": "f", "bp": "e", **place, "ts": item.begin * 1e6})
    Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), "utf-8")
