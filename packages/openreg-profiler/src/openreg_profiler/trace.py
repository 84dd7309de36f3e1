# SPDX-License-Identifier: BSD-3-Clause
"""Reads a trace file that ``torch.profiler`` has exported, and rejects files that are no trace of an openreg device.

A trace is JSON in the format of Chrome's trace viewer. Its times are in microseconds.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEVICE = re.compile(r"openreg:(\d+)")  # the name of a device
# Kineto's categories of tasks, of ranges on a stream and of items of the host.
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
RANGES = "gpu_user_annotation"
# The name of a mark at the end of an arrow between streams (trace.cpp). A program's range with this name has arguments.
MARK = "event"
HOST = ("cpu_op", "user_annotation", "python_function")
# The value of torch._C._autograd.DeviceType.PrivateUse1.
PRIVATE_USE_1 = 20


class TraceFileError(ValueError):
    """An error for a file that is no trace of an openreg device, with its name and the remedy in the message."""


@dataclass(frozen=True)
class StreamTrack:
    """The track of a stream, with its number in this trace and its displayed name."""

    device: int
    number: int
    name: str


@dataclass(frozen=True)
class Slice:
    """An item of a trace with a beginning and an end, in microseconds.

    ``process`` and ``track`` are the device and the number of a stream, or the process and the thread of the host.
    """

    name: str
    category: str
    process: Any
    track: Any
    begin: float
    end: float
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def duration(self) -> float:
        """Returns the duration in microseconds."""
        return self.end - self.begin

    @property
    def is_collective(self) -> bool:
        """Returns True if messages of a collective are in transit during the slice, which keeps no engine busy."""
        return "collective" in self.args


@dataclass(frozen=True)
class Arrow:
    """An arrow from a launch on the host to its task on the device.

    ``thread`` is (process, thread), and ``stream`` is (device, number of the stream).
    """

    thread: tuple[Any, Any]
    launched: float
    stream: tuple[int, int]
    started: float


@dataclass(frozen=True)
class Dependency:
    """An arrow from the last task before an event record to the end of another stream's wait for the event."""

    stream: tuple[int, int]
    done: float
    waiting: tuple[int, int]
    released: float


@dataclass(frozen=True)
class Allocation:
    """The memory of a device after an allocation or a release, in bytes."""

    thread: tuple[Any, Any]
    time: float
    device: int
    allocated: int
    reserved: int
    change: int


@dataclass
class TraceFile:
    """The content of a trace file about openreg devices and the host.

    Lists are sorted by time, except ``dependencies``.
    """

    path: Path
    document: dict[str, Any]  # the content of the file
    streams: dict[tuple[int, int], StreamTrack] = field(default_factory=dict)
    work: list[Slice] = field(default_factory=list)  # kernels, copies and fills
    waits: list[Slice] = field(default_factory=list)  # waits of streams
    ranges: list[Slice] = field(default_factory=list)  # record_function() ranges and graph launches, on the streams
    host: list[Slice] = field(default_factory=list)  # operators, ranges and Python functions
    launches: list[Slice] = field(default_factory=list)  # calls of the host that launch tasks
    arrows: list[Arrow] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)
    memory: list[Allocation] = field(default_factory=list)

    @property
    def begin(self) -> float:
        """Returns the beginning of the first slice of a device or the host."""
        return min(item.begin for item in self._all())

    @property
    def end(self) -> float:
        """Returns the end of the last slice of a device or the host."""
        return max(item.end for item in self._all())

    def _all(self) -> Iterator[Slice]:
        for items in (self.work, self.waits, self.launches, self.host):
            yield from items


def read(path: str | Path) -> TraceFile:
    """Reads a trace, compressed or not.

    Raises :class:`TraceFileError` if the file cannot be read, was cut off, or is no trace of an openreg device.
    """
    path = Path(path)
    document = _document(path)
    events = document.get("traceEvents") if isinstance(document, dict) else None
    if not isinstance(events, list):
        raise TraceFileError(
            f"{path} is JSON, and no trace: it has no list `traceEvents`. Give a file that "
            "torch.profiler.profile.export_chrome_trace() wrote."
        )
    trace = TraceFile(path, document)
    names = _track_names(events)
    devices = {process: int(found[1]) for process, name in names[0].items() if (found := DEVICE.fullmatch(name))}
    starts: dict[Any, tuple[tuple[Any, Any], float]] = {}
    ends: dict[Any, tuple[tuple[int, int], float]] = {}
    try:
        for event in events:
            _take(trace, event, devices, names[1], starts, ends)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TraceFileError(
            f"{path} has an entry that no trace of PyTorch's has ({error!r}): {event!r:.200}"
        ) from error
    if not trace.work and not trace.waits:
        raise TraceFileError(
            f"{path} has no work of an openreg device. Profile with activities=[ProfilerActivity.CPU, "
            "ProfilerActivity.PrivateUse1] a program that uses the device."
        )
    for flow, (place, time) in ends.items():
        start = starts.get(flow)
        if start is not None and start[0][0] in devices:
            trace.dependencies.append(Dependency(*start, place, time))
        elif start is not None:
            trace.arrows.append(Arrow(*start, place, time))
    for items in (trace.work, trace.waits, trace.ranges, trace.host, trace.launches):
        items.sort(key=lambda item: (item.begin, -item.end))
    trace.arrows.sort(key=lambda arrow: arrow.launched)
    trace.memory.sort(key=lambda item: item.time)
    return trace


def _document(path: Path) -> Any:
    """Returns the JSON value in a file. Raises :class:`TraceFileError` if the file has none."""
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        text = raw.decode("utf-8")
    except OSError as error:
        raise TraceFileError(f"{path} cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise TraceFileError(f"{path} is compressed and was cut off or damaged ({error}); export it again") from error
    except UnicodeDecodeError as error:
        raise TraceFileError(f"{path} is no trace: it is not text ({error.reason} at byte {error.start})") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        if text.lstrip()[:1] in ("{", "[") and (not rest or error.msg.startswith("Unterminated")):
            raise TraceFileError(
                f"{path} was cut off after {len(raw)} bytes (line {error.lineno}): the program ended while it "
                "wrote, or the disk is full. Export the trace again."
            ) from error
        raise TraceFileError(f"{path} is no trace: it is not JSON (line {error.lineno}: {error.msg})") from error


def _track_names(events: list[Any]) -> tuple[dict[Any, str], dict[tuple[Any, Any], str]]:
    """Returns the names of processes and devices by their id, and those of threads and streams by (process, thread)."""
    processes: dict[Any, str] = {}
    tracks: dict[tuple[Any, Any], str] = {}
    for event in events:
        if isinstance(event, dict) and event.get("ph") == "M" and isinstance(event.get("args"), dict):
            if event.get("name") == "process_name":
                processes[event.get("pid")] = str(event["args"].get("name"))
            elif event.get("name") == "thread_name":
                tracks[event.get("pid"), event.get("tid")] = str(event["args"].get("name"))
    return processes, tracks


def _take(
    trace: TraceFile,
    event: Any,
    devices: dict[Any, int],
    names: dict[tuple[Any, Any], str],
    starts: dict[Any, tuple[tuple[Any, Any], float]],
    ends: dict[Any, tuple[tuple[int, int], float]],
) -> None:
    """Adds one event of the file to the list of its kind. Adds the ends of an arrow to ``starts`` and ``ends``."""
    kind, category = event["ph"], event.get("cat")
    if kind == "X" and category in (*WORK, RANGES, *HOST, "privateuse1_runtime"):
        begin = float(event["ts"])
        item = Slice(
            str(event["name"]),
            str(category),
            event["pid"],
            event["tid"],
            begin,
            begin + float(event["dur"]),
            event.get("args", {}),
        )
        if category == "privateuse1_runtime":
            trace.launches.append(item)
        elif category in HOST:
            trace.host.append(item)
        elif item.process in devices:
            _take_from_device(trace, item, devices[item.process], names)
    elif kind in ("s", "f") and category == "ac2g":
        place = (event["pid"], event["tid"])
        if kind == "s":
            starts[event["id"]] = (place, float(event["ts"]))
        elif event["pid"] in devices:
            ends[event["id"]] = (place, float(event["ts"]))
    elif kind == "i" and event.get("name") == "[memory]" and event["args"].get("Device Type") == PRIVATE_USE_1:
        args = event["args"]
        trace.memory.append(
            Allocation(
                (event["pid"], event["tid"]),
                float(event["ts"]),
                int(args["Device Id"]),
                int(args["Total Allocated"]),
                int(args["Total Reserved"]),
                int(args["Bytes"]),
            )
        )


def _take_from_device(trace: TraceFile, item: Slice, device: int, names: dict[tuple[Any, Any], str]) -> None:
    """Adds a slice of a stream to the list of its kind."""
    place = (device, int(item.track))
    if place not in trace.streams:
        trace.streams[place] = StreamTrack(*place, names.get((item.process, item.track), f"stream {item.track}"))
    if item.category in WORK:
        trace.work.append(item)
    elif item.name.startswith("wait for ") and "place" in item.args:
        trace.waits.append(item)
    elif item.name != MARK or item.args:
        trace.ranges.append(item)
