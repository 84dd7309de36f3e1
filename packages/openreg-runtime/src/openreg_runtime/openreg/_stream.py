# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events under the names of ``torch.cuda``: subclasses of ``torch.Stream`` and ``torch.Event``."""

from __future__ import annotations

from types import TracebackType
from typing import Any, cast

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device, device_index


class Stream(torch.Stream):
    """A queue of work. A lower ``priority`` number is served first (0 to -3; others are clamped).

    It lives as long as the process, and costs no thread. ``native_handle`` is the driver's ``orStream_t`` as a number.
    """

    native_handle: int

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **identity: int) -> Stream:
        if identity:  # an existing stream, named by stream_id, device_index and device_type
            return super().__new__(cls, **identity)
        index = device_index(device)
        return super().__new__(cls, device=torch.device("openreg", index), priority=priority)

    @property
    def priority(self) -> int:
        """The priority that the stream has, from 0 down to -3, which is served first."""
        return _C._stream_priority(self.stream_id, self.device_index)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The priority served last and the one served first: ``(0, -3)``."""
        return _C._stream_priority_range()

    # PyTorch's method takes no subclass of torch.Event.
    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Marks the work that the stream holds now, in ``event`` or a new one; returns the event."""
        marked = Event() if event is None else event
        marked.record(self)
        return marked


class ExternalStream(Stream):
    """A stream that another library made with ``orStreamCreate()``, by its handle.

    That library keeps the stream alive as long as it is used here. Handle 0 is the default stream of ``device``. Raises
    RuntimeError for a handle that no stream has, and ValueError if the stream belongs to another device than ``device``
    (source: ``torch.cuda.ExternalStream``).
    """

    def __new__(cls, stream_ptr: int, device: DeviceLike = None) -> ExternalStream:
        index = None if device is None else device_index(device)
        if stream_ptr == 0:
            stream_id, owner = 0, device_index(device)
        else:
            stream_id, owner = _C._stream_from_handle(stream_ptr)
        if index not in (None, owner):
            raise ValueError(
                f"the stream with handle {stream_ptr:#x} belongs to openreg:{owner}, but device openreg:{index} was "
                "given; pass its own device or none"
            )
        identity = {"stream_id": stream_id, "device_index": owner, "device_type": default_stream(owner).device_type}
        return cast(ExternalStream, super().__new__(cls, **identity))


def get_stream_from_external(data_ptr: int, device: DeviceLike = None) -> ExternalStream:
    """The stream with a driver's handle; see :class:`ExternalStream` (source: ``torch.cuda``)."""
    return ExternalStream(data_ptr, device)


class _EventType(type):
    """Lets every event of this device count as an instance of :class:`Event`."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Event and isinstance(instance, torch.Event) and instance.device.type == "openreg"


class Event(torch.Event, metaclass=_EventType):
    """A mark in a stream; ``elapsed_time`` needs ``enable_timing=True`` on both events.

    ``Event(...)`` makes a plain ``torch.Event`` of this device, because the methods of ``torch.Stream`` and
    ``torch.Event`` take no subclass; it counts as an instance of this class all the same. Classes derived from this one
    have instances of their own. A wait never spins, so ``blocking`` changes nothing. Events cannot be shared between
    processes: ``interprocess=True`` raises NotImplementedError, and so does ``ipc_handle()``.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        if interprocess:
            raise NotImplementedError(
                "events of openreg devices cannot be shared between processes; call synchronize() on the event and "
                "notify the other process (a queue or a barrier of torch.multiprocessing)"
            )
        made: Any = torch.Event if cls is Event else super().__new__
        first = () if cls is Event else (cls,)
        return cast(Event, made(*first, device="openreg", enable_timing=enable_timing, blocking=blocking))

    # PyTorch's method takes no subclass of torch.Event.
    def elapsed_time(self, other: torch.Event) -> float:
        """Milliseconds from this event to ``other``; both need ``enable_timing=True`` and must be done."""
        return _C._event_elapsed_time(self, other)

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> Event:  # noqa: ARG003
        """Raises NotImplementedError: events cannot be shared between processes."""
        return cls(interprocess=True)


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


def _refuse_other_streams(function: str, stream: torch.Stream) -> None:
    """Raises RuntimeError for a stream of another device type, which PyTorch refuses after it has switched devices."""
    if stream.device.type != "openreg":
        raise RuntimeError(
            f"torch.openreg.{function}: expected a stream of an openreg device, got one of {stream.device}; "
            "make it with torch.openreg.Stream() or torch.Stream('openreg')"
        )


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream, and its device, current in this thread; ``None`` changes nothing.

    Raises RuntimeError for a stream of another device type.
    """
    if stream is not None:
        _refuse_other_streams("set_stream", stream)
        torch.accelerator.set_stream(stream)


class StreamContext:
    """Context in which a stream, and its device, are current; ``None`` changes nothing.

    Entering it raises RuntimeError for a stream of another device type, and then leaves both as they were. An object
    may be entered again inside itself, but by one thread only: the current stream belongs to the thread.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._device = device(None if stream is None else stream.device_index)
        self._previous: list[torch.Stream] = []

    def __enter__(self) -> None:
        if self.stream is None:
            return
        _refuse_other_streams("stream", self.stream)
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
