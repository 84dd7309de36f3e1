# SPDX-License-Identifier: BSD-3-Clause
"""Memory statistics, caches and limits. All sizes are in bytes.

The functions correspond to those of ``torch.cuda`` and call those of ``torch.accelerator`` where these exist.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device_index
from openreg_runtime.openreg._stream import current_stream


def empty_cache() -> None:
    """Blocks until all tasks are complete, and returns memory to the devices that is cached but used by no tensor.

    Raises RuntimeError while a stream of one of the devices is capturing.
    """
    torch.accelerator.empty_cache()


def empty_host_cache() -> None:
    """Releases cached pinned host memory to the system.

    ``torch.accelerator.empty_host_cache`` does nothing before the device is initialized, even if the process has pinned
    memory already.
    """
    _C._empty_host_cache()


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """Returns the caching allocator's statistics by their dotted names (source: ``torch.cuda.memory_stats``).

    The part of ``reserved_bytes`` in a private pool is ``reserved_bytes_by_private_pools.FIRST_SECOND``, with the two
    numbers of the pool's id.
    """
    return _flatten(memory_stats_as_nested_dict(device))


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """Returns the statistics of :func:`memory_stats` as nested dictionaries; empty before the device is used."""
    index = device_index(device)
    if not _C._is_initialized():
        return {}
    pools = _C._reserved_bytes_by_private_pools(index)
    return {**torch._C._accelerator_getDeviceStats(index), "reserved_bytes_by_private_pools": pools}


def memory_allocated(device: DeviceLike = None) -> int:
    """Returns the bytes that tensors use."""
    return torch.accelerator.memory_allocated(device_index(device))


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Returns the peak of :func:`memory_allocated` since the process began or :func:`reset_peak_memory_stats`."""
    return torch.accelerator.max_memory_allocated(device_index(device))


def memory_reserved(device: DeviceLike = None) -> int:
    """Returns the bytes in segments of the caching allocator: those of tensors and those in its cache."""
    return torch.accelerator.memory_reserved(device_index(device))


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Returns the peak of :func:`memory_reserved` since the process began or :func:`reset_peak_memory_stats`."""
    return torch.accelerator.max_memory_reserved(device_index(device))


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Sets every peak to the current value."""
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Sets every accumulated statistic to zero."""
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Returns the free bytes and the capacity of a device. Memory in the allocator's cache is not free."""
    free, total = torch.accelerator.get_memory_info(device_index(device))
    return free, total


def device_memory_used(device: DeviceLike = None) -> int:
    """Returns the bytes of a device that are not free, including memory in the allocator's cache."""
    free, total = mem_get_info(device)
    return total - free


def host_memory_stats() -> dict[str, Any]:
    """Returns the statistics of pinned memory by their dotted names (source: ``torch.cuda.host_memory_stats``).

    Times are in microseconds.
    """
    return _flatten(host_memory_stats_as_nested_dict())


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Returns the statistics of :func:`host_memory_stats` as nested dictionaries."""
    return _C._host_memory_stats()


def reset_peak_host_memory_stats() -> None:
    """Sets every peak of :func:`host_memory_stats` to the current value."""
    _C._reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats() -> None:
    """Sets every accumulated number of :func:`host_memory_stats` to zero."""
    _C._reset_accumulated_host_memory_stats()


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Limits the segments of the caching allocator to a part of a device's capacity, between 0 and 1.

    An allocation that would exceed the limit raises ``torch.OutOfMemoryError``. Existing segments stay. Raises
    TypeError unless ``fraction`` is a float, and ValueError if it is out of range.
    """
    if not isinstance(fraction, float):
        raise TypeError(f"set_per_process_memory_fraction: expected a float from 0 to 1, but got {fraction!r}")
    _C._set_memory_fraction(fraction, device_index(device))


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """Returns the part of a device's capacity to which the caching allocator's segments are limited.

    It is 1 unless :func:`set_per_process_memory_fraction` or ``per_process_memory_fraction`` of ``PYTORCH_ALLOC_CONF``
    has set it.
    """
    return _C._get_memory_fraction(device_index(device))


def caching_allocator_alloc(size: int, device: DeviceLike = None, stream: torch.Stream | int | None = None) -> int:
    """Allocates memory for tasks of a stream and returns its address, for other frameworks.

    The caller owns the memory and releases it with :func:`caching_allocator_delete`. ``stream`` is a stream of the
    device, its ``native_handle``, 0 for the default stream, or ``None`` for the current stream. Raises ValueError for a
    stream of another device, RuntimeError for an unknown handle, and TypeError for any other object.
    """
    index = device_index(device)
    if stream is None:
        stream = current_stream(index)
    if isinstance(stream, torch.Stream):
        stream_id, owner = stream.stream_id, stream.device
    elif isinstance(stream, int):
        stream_id, owner_index = _C._stream_from_handle(stream) if stream != 0 else (0, index)
        owner = torch.device("openreg", owner_index)
    else:
        raise TypeError(f"caching_allocator_alloc: expected a stream or its native_handle, but got {stream!r}")
    if owner != torch.device("openreg", index):
        raise ValueError(
            f"caching_allocator_alloc: the stream belongs to {owner}, but memory of openreg:{index} was "
            "requested; pass a stream of that device"
        )
    return _C._raw_allocate(size, index, stream_id)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Releases memory of :func:`caching_allocator_alloc`.

    Raises ValueError unless an allocation of the caching allocator begins at the address, so also if the memory was
    released before. Does nothing for 0.
    """
    _C._raw_delete(mem_ptr)


def get_allocator_backend() -> str:
    """Returns ``"native"``, PyTorch's name of a caching allocator that is not the driver's."""
    return "native"


def set_allocator_settings(env: str) -> None:
    """Changes settings of the allocator. ``env`` has the syntax of ``PYTORCH_ALLOC_CONF``."""
    torch._C._accelerator_setAllocatorSettings(env)


def _flatten(stats: dict[str, Any]) -> dict[str, Any]:
    return OrderedDict(sorted(_leaves("", stats)))


def _leaves(prefix: str, stats: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in stats.items():
        name = "_".join(map(str, key)) if isinstance(key, tuple) else key
        if isinstance(value, dict):
            yield from _leaves(f"{prefix}{name}.", value)
        else:
            yield prefix + name, value
