# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events under the names of ``torch.cuda``: subclasses of ``torch.Stream`` and ``torch.Event``."""

from __future__ import annotations

from types import TracebackType

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device, device_index


class Stream(torch.Stream):
    """A queue of work. A lower ``priority`` number is served first (0 to -3; others are clamped).

    It lives as long as the process, and costs no thread.
    """

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **identity: int) -> Stream:
        if identity:  # an existing stream, named by stream_id, device_index and device_type
            return super().__new__(cls, **identity)
        index = device_index(device)
        return super().__new__(cls, device=torch.device("openreg", index), priority=priority)

    # PyTorch's method takes no subclass of torch.Event.
    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Marks the work that the stream holds now, in ``event`` or a new one; returns the event."""
        marked = Event() if event is None else event
        marked.record(self)
        return marked


class Event(torch.Event):
    """A mark in a stream; ``elapsed_time`` needs ``enable_timing=True`` on both events."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        return super().__new__(
            cls, device="openreg", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )

    # PyTorch's method takes no subclass of torch.Event.
    def elapsed_time(self, other: torch.Event) -> float:
        """Milliseconds from this event to ``other``; both need ``enable_timing=True`` and must be done."""
        return _C._event_elapsed_time(self, other)


def _as_stream(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: DeviceLike = None) -> Stream:
    """This thread's current stream of a device."""
    return _as_stream(torch.accelerator.current_stream(device_index(device)))


def default_stream(device: DeviceLike = None) -> Stream:
    """The stream that a device's work goes to unless another is current."""
    index = device_index(device)
    current = torch.accelerator.current_stream(index)
    return Stream(stream_id=_C._default_stream_id(index), device_index=index, device_type=current.device_type)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream, and its device, current in this thread; ``None`` changes nothing."""
    if stream is not None:
        torch.accelerator.set_stream(stream)


class StreamContext:
    """Context in which a stream, and its device, are current; ``None`` changes nothing.

    An object may be entered again inside itself, but by one thread only: the current stream belongs to the thread.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._device = device(None if stream is None else stream.device_index)
        self._previous: list[torch.Stream] = []

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._device.__enter__()
        self._previous.append(torch.accelerator.current_stream())
        torch.accelerator.set_stream(self.stream)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.stream is None:
            return
        torch.accelerator.set_stream(self._previous.pop())
        self._device.__exit__(kind, error, trace)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context in which a stream is current."""
    return StreamContext(stream)


def sleep(cycles: int) -> None:
    """Pauses the current stream, not the host: a kernel of known duration. One cycle is a nanosecond."""
    _C._delay_current_stream(int(cycles))
