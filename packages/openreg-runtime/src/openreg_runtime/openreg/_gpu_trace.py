# SPDX-License-Identifier: BSD-3-Clause
"""The callbacks of PyTorch's GPU trace for this device (source: ``torch.cuda._gpu_trace``).

``torch._C._activate_gpu_trace()`` turns the trace on for the process. From then on the device calls these lists, on the
thread that makes the call. Arguments are integers: handles of events and streams, and addresses of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._utils import CallbackRegistry

EventCreationCallbacks = CallbackRegistry[[int]]("openreg event creation")
EventDeletionCallbacks = CallbackRegistry[[int]]("openreg event deletion")
EventRecordCallbacks = CallbackRegistry[[int, int]]("openreg event record")
EventWaitCallbacks = CallbackRegistry[[int, int]]("openreg event wait")
MemoryAllocationCallbacks = CallbackRegistry[[int]]("openreg memory allocation")
MemoryDeallocationCallbacks = CallbackRegistry[[int]]("openreg memory deallocation")
StreamCreationCallbacks = CallbackRegistry[[int]]("openreg stream creation")
DeviceSynchronizationCallbacks = CallbackRegistry[[]]("openreg device synchronization")
StreamSynchronizationCallbacks = CallbackRegistry[[int]]("openreg stream synchronization")
EventSynchronizationCallbacks = CallbackRegistry[[int]]("openreg event synchronization")


def register_callback_for_event_creation(cb: Callable[[int], Any]) -> None:
    """Calls ``cb(event)`` when an event is created, at its first record."""
    EventCreationCallbacks.add_callback(cb)


def register_callback_for_event_deletion(cb: Callable[[int], Any]) -> None:
    """Calls ``cb(event)`` before an event is deleted."""
    EventDeletionCallbacks.add_callback(cb)


def register_callback_for_event_record(cb: Callable[[int, int], Any]) -> None:
    """Calls ``cb(event, stream)`` after a record."""
    EventRecordCallbacks.add_callback(cb)


def register_callback_for_event_wait(cb: Callable[[int, int], Any]) -> None:
    """Calls ``cb(event, stream)`` after a stream was made to wait for an event."""
    EventWaitCallbacks.add_callback(cb)


def register_callback_for_memory_allocation(cb: Callable[[int], Any]) -> None:
    """Calls ``cb(address)`` after device memory was allocated."""
    MemoryAllocationCallbacks.add_callback(cb)


def register_callback_for_memory_deallocation(cb: Callable[[int], Any]) -> None:
    """Calls ``cb(address)`` after device memory was released to the caching allocator."""
    MemoryDeallocationCallbacks.add_callback(cb)


def register_callback_for_stream_creation(cb: Callable[[int], Any]) -> None:
    """Calls ``cb(stream)`` after a stream was created."""
    StreamCreationCallbacks.add_callback(cb)


def register_callback_for_device_synchronization(cb: Callable[[], Any]) -> None:
    """Calls ``cb()`` before the host waits for a device."""
    DeviceSynchronizationCallbacks.add_callback(cb)


def register_callback_for_stream_synchronization(cb: Callable[[int], Any]) -> None:
    """Calls ``cb(stream)`` before the host waits for a stream."""
    StreamSynchronizationCallbacks.add_callback(cb)


def register_callback_for_event_synchronization(cb: Callable[[int], Any]) -> None:
    """Calls ``cb(event)`` before the host waits for an event."""
    EventSynchronizationCallbacks.add_callback(cb)
