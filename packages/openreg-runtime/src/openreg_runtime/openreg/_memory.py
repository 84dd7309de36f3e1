# SPDX-License-Identifier: BSD-3-Clause
"""Memory statistics, caches and limits; all sizes are bytes.

The functions have the names and meaning of ``torch.cuda``'s and delegate to ``torch.accelerator`` where that has them.
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
    """Gives cached memory without tensors in it back to the devices, after all their work.

    Raises RuntimeError while a capture is under way on one of them.
    """
    torch.accelerator.empty_cache()


def empty_host_cache() -> None:
    """Gives cached pinned host memory back to the system.

    ``torch.accelerator.empty_host_cache`` does nothing where pinned memory was all that a process used of the device.
    """
    _C._empty_host_cache()


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """Statistics of the caching allocator by their dotted names (source: ``torch.cuda.memory_stats``).

    A private pool's part of ``reserved_bytes`` is called ``reserved_bytes_by_private_pools.FIRST_SECOND``, after the
    two numbers of its id.
    """
    return _flatten(memory_stats_as_nested_dict(device))


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """The same as nested dictionaries; empty before the device is used."""
    index = device_index(device)
    if not _C._is_initialized():
        return {}
    pools = _C._reserved_bytes_by_private_pools(index)
    return {**torch._C._accelerator_getDeviceStats(index), "reserved_bytes_by_private_pools": pools}


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors hold."""
    return torch.accelerator.memory_allocated(device_index(device))


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Most bytes that tensors held since the start or :func:`reset_peak_memory_stats`."""
    return torch.accelerator.max_memory_allocated(device_index(device))


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes that the caching allocator holds, for tensors and in its cache."""
    return torch.accelerator.memory_reserved(device_index(device))


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Most bytes that the caching allocator held since the start or :func:`reset_peak_memory_stats`."""
    return torch.accelerator.max_memory_reserved(device_index(device))


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Lets every peak start anew from the current value."""
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Sets every accumulated statistic to zero."""
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free bytes and capacity of a device, as the driver sees them: cached memory counts as used."""
    free, total = torch.accelerator.get_memory_info(device_index(device))
    return free, total


def device_memory_used(device: DeviceLike = None) -> int:
    """Bytes of a device that are in use by anybody, cached memory included."""
    free, total = mem_get_info(device)
    return total - free


def host_memory_stats() -> dict[str, Any]:
    """Statistics of the pinned host memory by their dotted names (source: ``torch.cuda.host_memory_stats``).

    Times are microseconds.
    """
    return _flatten(host_memory_stats_as_nested_dict())


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """The same as nested dictionaries."""
    return _C._host_memory_stats()


def reset_peak_host_memory_stats() -> None:
    """Lets every peak of :func:`host_memory_stats` start anew from the current value."""
    _C._reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats() -> None:
    """Sets every accumulated number of :func:`host_memory_stats` to zero."""
    _C._reset_accumulated_host_memory_stats()


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Limits what the caching allocator may hold to a part of a device's capacity, 0 to 1.

    More raises ``torch.OutOfMemoryError``; what is held already stays. Raises TypeError unless ``fraction`` is a float,
    ValueError when it is out of range.
    """
    if not isinstance(fraction, float):
        raise TypeError(f"the memory fraction must be a float from 0 to 1, got {fraction!r}")
    _C._set_memory_fraction(fraction, device_index(device))


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """The part of a device's capacity that the caching allocator may hold.

    1 unless :func:`set_per_process_memory_fraction` or ``per_process_memory_fraction`` of ``PYTORCH_ALLOC_CONF`` says
    otherwise.
    """
    return _C._get_memory_fraction(device_index(device))


def caching_allocator_alloc(size: int, device: DeviceLike = None, stream: torch.Stream | int | None = None) -> int:
    """Address of new memory for work of a stream, for other frameworks to use.

    It belongs to the caller until :func:`caching_allocator_delete`. ``stream`` is a stream of the device, its
    ``stream_id``, or ``None`` for the current stream.
    """
    index = device_index(device)
    if stream is None:
        stream = current_stream(index)
    if isinstance(stream, torch.Stream):
        if stream.device != torch.device("openreg", index):
            raise ValueError(f"the stream belongs to {stream.device}, but memory of openreg:{index} was requested")
        stream = stream.stream_id
    if not isinstance(stream, int):
        raise TypeError(f"stream must be a stream or its stream_id, got {stream!r}")
    return _C._raw_allocate(size, index, stream)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Releases what :func:`caching_allocator_alloc` returned; ValueError for any other address, or the second time."""
    _C._raw_delete(mem_ptr)


def get_allocator_backend() -> str:
    """Name of the allocator: always ``"native"``, PyTorch's name for a caching allocator of its own design."""
    return "native"


def set_allocator_settings(env: str) -> None:
    """Changes settings of the allocator at run time; the form is that of ``PYTORCH_ALLOC_CONF``."""
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
