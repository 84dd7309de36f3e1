# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events under the names of ``torch.cuda``: subclasses of ``torch.Stream`` and ``torch.Event``."""

from __future__ import annotations

from types import TracebackType
from typing import Any, cast

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device, device_index


class Stream(torch.Stream):
    """A queue of tasks of one device, which are executed in order.

    Tasks of streams with a lower ``priority`` number run first. The number is clamped to the range 0 to -3. The stream
    exists until the process ends, and has no thread. ``native_handle`` is the driver's ``orStream_t`` as a number.
    """

    native_handle: int

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **identity: int) -> Stream:
        if identity:  # an existing stream, identified by stream_id, device_index and device_type
            return super().__new__(cls, **identity)
        index = device_index(device)
        return super().__new__(cls, device=torch.device("openreg", index), priority=priority)

    @property
    def priority(self) -> int:
        """Returns the priority of the stream, from 0 to -3. Streams of priority -3 run first."""
        return _C._stream_priority(self.stream_id, self.device_index)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Returns the lowest and the highest priority: ``(0, -3)``."""
        return _C._stream_priority_range()

    # PyTorch's method rejects subclasses of torch.Event.
    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Records ``event``, or a new event, in the stream, after the tasks enqueued so far. Returns the event."""
        marked = Event() if event is None else event
        marked.record(self)
        return marked


class ExternalStream(Stream):
    """A stream that another library created with ``orStreamCreate()`` (source: ``torch.cuda.ExternalStream``).

    ``stream_ptr`` is its handle; 0 is the default stream of ``device``. The other library keeps the stream alive while
    this object is used. Raises RuntimeError for an unknown handle, and ValueError if the stream belongs to another
    device than ``device``.
    """

    def __new__(cls, stream_ptr: int, device: DeviceLike = None) -> ExternalStream:
        index = None if device is None else device_index(device)
        if stream_ptr == 0:
            stream_id, owner = 0, device_index(device)
        else:
            stream_id, owner = _C._stream_from_handle(stream_ptr)
        if index not in (None, owner):
            raise ValueError(
                f"ExternalStream: the stream with handle {stream_ptr:#x} belongs to openreg:{owner}, but device "
                f"openreg:{index} was given; pass its own device or none"
            )
        identity = {"stream_id": stream_id, "device_index": owner, "device_type": default_stream(owner).device_type}
        return cast(ExternalStream, super().__new__(cls, **identity))


def get_stream_from_external(data_ptr: int, device: DeviceLike = None) -> ExternalStream:
    """Returns the stream with this handle of the driver; see :class:`ExternalStream`."""
    return ExternalStream(data_ptr, device)


class _EventType(type):
    """A metaclass that makes every event of this device an instance of :class:`Event` for ``isinstance()``."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Event and isinstance(instance, torch.Event) and instance.device.type == "openreg"


class Event(torch.Event, metaclass=_EventType):
    """A marker in a stream; ``elapsed_time`` requires ``enable_timing=True`` for both events.

    ``Event(...)`` returns a plain ``torch.Event`` of this device, because methods of ``torch.Stream`` and
    ``torch.Event`` reject subclasses. ``isinstance()`` nevertheless accepts it as an instance of this class. Classes
    derived from this class have real instances. ``blocking`` has no effect. Events cannot be shared between processes,
    so ``interprocess=True`` and ``ipc_handle()`` raise NotImplementedError, and so does ``external=True``, because a
    graph has no nodes that record events or wait for them.
    """

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Event:
        if external:
            raise NotImplementedError(
                "Event: a graph of an openreg device records no external events; leave out external=True, and record "
                "the event before or after the replay"
            )
        if interprocess:
            raise NotImplementedError(
                "events of openreg devices cannot be shared between processes; call synchronize() on the event and "
                "notify the other process (a queue or a barrier of torch.multiprocessing)"
            )
        made: Any = torch.Event if cls is Event else super().__new__
        first = () if cls is Event else (cls,)
        return cast(Event, made(*first, device="openreg", enable_timing=enable_timing, blocking=blocking))

    # PyTorch's method rejects subclasses of torch.Event.
    def elapsed_time(self, other: torch.Event) -> float:
        """Returns the milliseconds from this event to ``other``. Both need ``enable_timing=True`` and are complete."""
        return _C._event_elapsed_time(self, other)

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> Event:  # noqa: ARG003
        """Raises NotImplementedError, because events cannot be shared between processes."""
        return cls(interprocess=True)


def _as_stream(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: DeviceLike = None) -> Stream:
    """Returns this thread's current stream of a device."""
    return _as_stream(torch.accelerator.current_stream(device_index(device)))


def default_stream(device: DeviceLike = None) -> Stream:
    """Returns the default stream of a device, which is current unless a thread sets another stream."""
    index = device_index(device)
    current = torch.accelerator.current_stream(index)
    return Stream(stream_id=_C._default_stream_id(index), device_index=index, device_type=current.device_type)


def _refuse_other_streams(function: str, stream: torch.Stream) -> None:
    """Raises RuntimeError for a stream of another device type. PyTorch would change the device before it raises."""
    if stream.device.type != "openreg":
        raise RuntimeError(
            f"torch.openreg.{function}: expected a stream of an openreg device, got one of {stream.device}; "
            "make it with torch.openreg.Stream() or torch.Stream('openreg')"
        )


def set_stream(stream: torch.Stream | None) -> None:
    """Sets the current stream and its device as the current device of this thread; ``None`` changes nothing.

    Raises RuntimeError for a stream of another device type.
    """
    if stream is not None:
        _refuse_other_streams("set_stream", stream)
        torch.accelerator.set_stream(stream)


class StreamContext:
    """A context in which a stream and its device are current; ``None`` changes nothing.

    ``__enter__`` raises RuntimeError for a stream of another device type, and changes nothing then. A context may be
    entered again before it is left, but only by one thread, because each thread has its current stream.
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
    """Returns a context in which a stream and its device are current."""
    return StreamContext(stream)


def sleep(cycles: int) -> None:
    """Enqueues a delay on the current stream, in place of a kernel of known duration. A cycle is a nanosecond."""
    _C._delay_current_stream(int(cycles))
