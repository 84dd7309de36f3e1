# SPDX-License-Identifier: BSD-3-Clause
"""The callbacks of PyTorch's GPU trace for this device (source: ``torch.cuda._gpu_trace``).

``torch._C._activate_gpu_trace()`` starts the trace of the process. From then on, each call of the device runs the
callbacks of its kind, on the thread of the call. Their arguments are integers: handles of events and streams, and
addresses of memory.
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
    """Registers ``cb(event)``, which is called when an event is created, at its first record."""
    EventCreationCallbacks.add_callback(cb)


def register_callback_for_event_deletion(cb: Callable[[int], Any]) -> None:
    """Registers ``cb(event)``, which is called before an event is deleted."""
    EventDeletionCallbacks.add_callback(cb)


def register_callback_for_event_record(cb: Callable[[int, int], Any]) -> None:
    """Registers ``cb(event, stream)``, which is called after an event was recorded in a stream."""
    EventRecordCallbacks.add_callback(cb)


def register_callback_for_event_wait(cb: Callable[[int, int], Any]) -> None:
    """Registers ``cb(event, stream)``, which is called after the wait of a stream for an event was enqueued."""
    EventWaitCallbacks.add_callback(cb)


def register_callback_for_memory_allocation(cb: Callable[[int], Any]) -> None:
    """Registers ``cb(address)``, which is called after device memory was allocated."""
    MemoryAllocationCallbacks.add_callback(cb)


def register_callback_for_memory_deallocation(cb: Callable[[int], Any]) -> None:
    """Registers ``cb(address)``, which is called after device memory was released to the caching allocator."""
    MemoryDeallocationCallbacks.add_callback(cb)


def register_callback_for_stream_creation(cb: Callable[[int], Any]) -> None:
    """Registers ``cb(stream)``, which is called after a stream was created."""
    StreamCreationCallbacks.add_callback(cb)


def register_callback_for_device_synchronization(cb: Callable[[], Any]) -> None:
    """Registers ``cb()``, which is called before the host synchronizes with a device."""
    DeviceSynchronizationCallbacks.add_callback(cb)


def register_callback_for_stream_synchronization(cb: Callable[[int], Any]) -> None:
    """Registers ``cb(stream)``, which is called before the host synchronizes with a stream."""
    StreamSynchronizationCallbacks.add_callback(cb)


def register_callback_for_event_synchronization(cb: Callable[[int], Any]) -> None:
    """Registers ``cb(event)``, which is called before the host synchronizes with an event."""
    EventSynchronizationCallbacks.add_callback(cb)
