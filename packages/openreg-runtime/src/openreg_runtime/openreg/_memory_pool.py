# SPDX-License-Identifier: BSD-3-Clause
"""Private pools of device memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device_count, device_index
from openreg_runtime.openreg._memory_history import memory_snapshot


class MemPool:
    """Memory kept apart: it serves allocations made inside :func:`use_mem_pool`, and no others.

    When the object and the tensors in its memory are gone, the memory goes back to the devices with the next
    :func:`torch.openreg.empty_cache`, or when an allocation finds no room (source: ``torch.cuda.MemPool``).
    """

    def __init__(self) -> None:
        self._id = _C._make_pool_id(False)
        self._devices: list[int] = []
        for device in range(device_count()):
            _C._retain_pool(device, self._id)
            self._devices.append(device)

    def __del__(self) -> None:
        for device in self._devices:
            _C._release_pool(device, self._id)

    @property
    def id(self) -> tuple[int, int]:
        """The two numbers that name the pool in statistics and snapshots."""
        return self._id

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """The segments of this pool on all devices; see :func:`torch.openreg.memory_snapshot`."""
        return memory_snapshot(self.id, include_traces)

    def empty(self) -> None:
        """Gives segments without tensors in them back to the devices, after all their work.

        Nothing is given back while a graph uses the pool, since a replay writes there.
        """
        _C._empty_pool(self.id)


@contextmanager
def use_mem_pool(pool: MemPool, device: DeviceLike = None) -> Iterator[None]:
    """Context in which the calling thread's allocations on a device come from a pool.

    Other threads, such as those that run a backward pass, allocate as ever.
    """
    index = device_index(device)
    _C._begin_allocate_of_thread_to_pool(index, pool.id)
    try:
        yield
    finally:
        _C._end_allocate_to_pool(index, pool.id)
        _C._release_pool(index, pool.id)
