# SPDX-License-Identifier: BSD-3-Clause
"""Private pools of device memory, whose blocks serve only chosen allocations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device_count, device_index
from openreg_runtime.openreg._memory_history import memory_snapshot


class MemPool:
    """A private pool of memory, which serves only allocations inside :func:`use_mem_pool` (``torch.cuda.MemPool``).

    The memory is released after the object and the tensors in the pool were deleted: by the next
    :func:`torch.openreg.empty_cache`, or by an allocation for which the free memory does not suffice. Raises
    NotImplementedError for an ``allocator`` of one's own, ``use_on_oom=True`` and ``no_split=True``.
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        options = {"allocator": allocator, "use_on_oom": use_on_oom, "no_split": no_split}
        for name, value in options.items():
            if value:
                raise NotImplementedError(
                    f"MemPool: {name}={value!r} is not supported on openreg devices; leave out {name}"
                )
        self._id = _C._make_pool_id(False)
        self._devices: list[int] = []
        for device in range(device_count()):
            _C._retain_pool(device, self._id)
            self._devices.append(device)

    def __del__(self) -> None:
        for device in getattr(self, "_devices", ()):  # absent if the constructor raised
            _C._release_pool(device, self._id)

    @property
    def id(self) -> tuple[int, int]:
        """Returns the id of the pool in statistics and snapshots: two numbers."""
        return self._id

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Returns the segments of this pool on all devices; see :func:`torch.openreg.memory_snapshot`."""
        return memory_snapshot(self.id, include_traces)

    def empty(self) -> None:
        """Blocks until all tasks are complete, and returns segments without tensors to the devices.

        Releases nothing while a graph uses the pool, because a replay writes to its memory.
        """
        _C._empty_pool(self.id)


@contextmanager
def use_mem_pool(pool: MemPool, device: DeviceLike = None) -> Iterator[None]:
    """A context in which the calling thread's allocations on a device come from a pool.

    Allocations of other threads, such as those of a backward pass, do not.
    """
    index = device_index(device)
    _C._begin_allocate_of_thread_to_pool(index, pool.id)
    try:
        yield
    finally:
        _C._end_allocate_to_pool(index, pool.id)
        _C._release_pool(index, pool.id)
