# SPDX-License-Identifier: BSD-3-Clause
"""Simulates a host that launches tasks, streams that keep their order, and engines that run them, by discrete events.

All times are seconds since the program began. The host launches tasks in the order of the program. A task begins when
it has been launched, its engine is free, and the tasks that it follows are complete: those before it in its stream, and
those for which the stream waits. An engine runs one task at a time. The task that can begin first runs first, and of
two with the same begin the one that was launched first.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMPUTE = "compute"


@dataclass(frozen=True)
class ExecutedTask:
    """A task that a simulation has executed. ``stream`` is a number that no other stream of the schedule has."""

    name: str
    stream: int
    engine: str
    launched: float
    begin: float
    end: float
    device: int = 0


@dataclass
class Schedule:
    """The executed tasks, and the host's launches and waits as (name, begin, end)."""

    slices: list[ExecutedTask] = field(default_factory=list)
    host_slices: list[tuple[str, float, float]] = field(default_factory=list)


@dataclass
class _Task:
    """A task that has been launched and not executed."""

    name: str
    engine: str
    seconds: float
    launched: float
    number: int
    waits: tuple[int, ...]  # numbers of the tasks that must be complete before this one begins


class Timeline(Schedule):
    """A schedule under construction, from the calls of a program in their order. Not thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self.host = 0.0
        self._queues: dict[int, deque[_Task]] = {}
        self._last: dict[int, int] = {}  # stream: number of its newest task
        self._engine_free: dict[str, float] = {}
        self._stream_free: dict[int, float] = {}
        self._ends: dict[int, float] = {}
        self._waiting: dict[int, list[int]] = {}
        self._next = 0

    def work_on_host(self, seconds: float, name: str = "host") -> None:
        """Advances the host's time by ``seconds``, in which the host is busy."""
        if seconds > 0:
            self.host_slices.append((name, self.host, self.host + seconds))
        self.host += seconds

    def launch(self, name: str, stream: int, seconds: float, engine: str = COMPUTE, host: float = 0.0) -> int:
        """Enqueues a task after ``host`` seconds that its launch takes, and returns its number."""
        self.work_on_host(host, name)
        number, self._next = self._next, self._next + 1
        waits = tuple(self._waiting.pop(stream, ()))
        self._queues.setdefault(stream, deque()).append(_Task(name, engine, seconds, self.host, number, waits))
        self._last[stream] = number
        return number

    def record(self, stream: int) -> int | None:
        """Returns the number of the newest task of a stream, as an event records it, or None if the stream is empty."""
        return self._last.get(stream)

    def wait(self, stream: int, number: int | None) -> None:
        """Makes later tasks of the stream begin after task ``number`` is complete. None has no effect."""
        if number is not None:
            self._waiting.setdefault(stream, []).append(number)

    def synchronize(self, number: int | None) -> None:
        """Makes the host wait until task ``number`` is complete. None has no effect."""
        while number is not None and number not in self._ends:
            self._run_next()
        if number is not None:
            begin, self.host = self.host, max(self.host, self._ends[number])
            if self.host > begin:
                self.host_slices.append(("wait", begin, self.host))

    def synchronize_device(self) -> None:
        """Makes the host wait until the tasks of all streams are complete."""
        for number in list(self._last.values()):
            self.synchronize(number)

    def finish(self) -> float:
        """Runs the remaining tasks and returns the time at which host and engines are done."""
        while any(self._queues.values()):
            self._run_next()
        return max([self.host, *(item.end for item in self.slices)])

    def _run_next(self) -> None:
        """Runs the task that can begin first. There always is one, because streams wait only for earlier launches."""
        best: tuple[float, int, int] | None = None
        for stream, queue in self._queues.items():
            if queue and all(number in self._ends for number in queue[0].waits):
                task = queue[0]
                ready = [task.launched, self._stream_free.get(stream, 0.0), self._engine_free.get(task.engine, 0.0)]
                start = max(ready + [self._ends[number] for number in task.waits])
                best = min(best or (start, task.number, stream), (start, task.number, stream))
        assert best is not None
        start, _, stream = best
        task = self._queues[stream].popleft()
        end = start + task.seconds
        self._ends[task.number] = self._stream_free[stream] = self._engine_free[task.engine] = end
        self.slices.append(ExecutedTask(task.name, stream, task.engine, task.launched, start, end))


def busy(schedule: Schedule) -> Mapping[str, float]:
    """Returns the seconds in which each engine is busy, summed over all devices."""
    found: dict[str, float] = {}
    for item in schedule.slices:
        found[item.engine] = found.get(item.engine, 0.0) + item.end - item.begin
    return found


def write_trace(schedule: Schedule, path: str | Path, title: str) -> None:
    """Writes the schedule in Chrome's trace format, which Perfetto reads.

    The trace has a track for each stream and one for the host, and arrows from launches to tasks. Raises OSError if the
    file cannot be written.
    """
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "host"}}]
    for device in sorted({item.device for item in schedule.slices}):
        name = f"{title}, device {device}" if device else title
        events.append({"ph": "M", "name": "process_name", "pid": device + 1, "args": {"name": name}})
    for device, stream in sorted({(item.device, item.stream) for item in schedule.slices}):
        shown = {"name": f"stream {stream}"}
        events.append({"ph": "M", "name": "thread_name", "pid": device + 1, "tid": stream, "args": shown})
    for name, begin, end in schedule.host_slices:
        events.append({"ph": "X", "name": name, "pid": 0, "tid": 0, "ts": begin * 1e6, "dur": (end - begin) * 1e6})
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
