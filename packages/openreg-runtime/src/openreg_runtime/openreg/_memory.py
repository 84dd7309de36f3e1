# SPDX-License-Identifier: BSD-3-Clause
"""Memory statistics and caches; all sizes are bytes.

The functions have the names and meaning of ``torch.cuda``'s and delegate to ``torch.accelerator`` where that has them.
"""

from __future__ import annotations

from typing import Any

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device_index


def empty_cache() -> None:
    """Gives cached memory without tensors in it back to the devices, after all their work."""
    torch.accelerator.empty_cache()


def empty_host_cache() -> None:
    """Gives cached pinned host memory back to the system."""
    torch.accelerator.empty_host_cache()


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """Statistics of the caching allocator, as ``torch.accelerator.memory_stats`` gives them."""
    return torch.accelerator.memory_stats(device_index(device))


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


def host_memory_stats() -> dict[str, Any]:
    """Statistics of the pinned host memory; each sum has ``current``, ``peak``, ``allocated`` and ``freed``."""
    return _C._host_memory_stats()


def reset_peak_host_memory_stats() -> None:
    """Lets every peak of :func:`host_memory_stats` start anew from the current value."""
    _C._reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats() -> None:
    """Sets every accumulated number of :func:`host_memory_stats` to zero."""
    _C._reset_accumulated_host_memory_stats()
