# SPDX-License-Identifier: BSD-3-Clause
"""Tensors in the queues and pipes of ``torch.multiprocessing``: the receiver maps the sender's memory.

A tensor is pickled as its storage and metadata (source: ``torch/multiprocessing/reductions.py``), so that one reducer
for storages serves tensors, parameters and modules. A storage is sent as the handle of the segment in which it lies,
and kept alive here until its receiver has released it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from multiprocessing import util
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

from openreg_runtime import _C

Reduced = tuple[Callable[..., torch.UntypedStorage], tuple[Any, ...]]

# What was sent and not released yet, by its IPC reference count.
_sent: dict[tuple[bytes, int], torch.UntypedStorage] = {}


def register_reducer() -> None:
    """Makes ``torch.multiprocessing`` send storages of this device; others it sends as before."""
    ForkingPickler.register(torch.UntypedStorage, _reduce_storage)


def ipc_collect() -> None:
    """Frees tensors that were sent to other processes and that all of them have released.

    Sending does the same. Memory of a receiver that was killed, or of a message that is never received, stays allocated
    until this process ends (source: ``torch.cuda.ipc_collect``).
    """
    for count in _C._collect_ipc_ref_counts():
        _sent.pop(count, None)


def _reduce_storage(storage: torch.UntypedStorage) -> Any:
    if storage.device.type != "openreg":
        return reductions.reduce_storage(storage)  # type: ignore[no-untyped-call]
    return _reduce_device_storage(storage)


def _reduce_device_storage(storage: torch.UntypedStorage) -> Reduced:
    device = storage.device.index
    if storage.nbytes() == 0:
        return _rebuild_empty, (device,)
    ipc_collect()
    segment, offset = _C._share_storage(storage)
    count = _C._new_ipc_ref_count(device)
    _sent[count] = storage
    return _rebuild_storage, (device, segment, offset, storage.nbytes(), *count)


def _rebuild_empty(device: int) -> torch.UntypedStorage:
    return torch.UntypedStorage(0, device=torch.device("openreg", device))  # type: ignore[no-untyped-call]


def _rebuild_storage(
    device: int, segment: bytes, offset: int, size: int, page: bytes, slot: int
) -> torch.UntypedStorage:
    own = _sent.pop((page, slot), None)
    if own is not None:  # a queue read by the process that filled it
        _C._cancel_ipc_ref_count(page, slot)
        return own
    key = (device, segment, offset)
    known: torch.UntypedStorage | None = reductions.storage_from_cache(  # type: ignore[no-untyped-call]
        torch.UntypedStorage, key
    )
    if known is not None:
        _C._release_ipc_ref_count(device, page, slot)
        return known
    _release_all_at_exit()
    storage = _C._open_storage(device, segment, offset, size, page, slot)
    reductions.shared_cache[key] = reductions.StorageWeakRef(storage)  # type: ignore[no-untyped-call]
    return storage


@functools.cache
def _release_all_at_exit() -> None:
    """Releases received memory when the process ends, because its tensors may be destroyed late or not at all."""
    util.Finalize(None, _C._release_all_ipc_ref_counts, exitpriority=0)
