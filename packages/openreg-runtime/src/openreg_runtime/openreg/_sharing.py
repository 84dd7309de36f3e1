# SPDX-License-Identifier: BSD-3-Clause
"""Sends tensors by the queues and pipes of ``torch.multiprocessing``. The receiver maps the sender's memory.

PyTorch pickles a tensor as its storage and metadata (``torch/multiprocessing/reductions.py``), so one reducer for
storages serves tensors, parameters and modules. A message contains the IPC handle of the segment that contains the
storage. The sender keeps the storage alive until the receiver has released it.
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
from openreg_runtime.openreg._device import lazy_init

Reduced = tuple[Callable[..., torch.UntypedStorage], tuple[Any, ...]]

# The storages that were sent and that the receiver has not released, by their IPC reference counts. These are counters
# in memory that sender and receiver share, identified by page and slot.
_sent: dict[tuple[bytes, int], torch.UntypedStorage] = {}


def register_reducer() -> None:
    """Makes ``torch.multiprocessing`` send storages of this device. Other storages are sent as before."""
    ForkingPickler.register(torch.UntypedStorage, _reduce_storage)


def ipc_collect() -> None:
    """Releases the memory of sent tensors that all receivers have released (source: ``torch.cuda.ipc_collect``).

    Sending a tensor does this, too. If a receiver was killed or a message is never received, the memory stays allocated
    until this process ends.
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
    if own is not None:  # the process receives its own message
        _C._cancel_ipc_ref_count(page, slot)
        return own
    key = (device, segment, offset)
    known: torch.UntypedStorage | None = reductions.storage_from_cache(  # type: ignore[no-untyped-call]
        torch.UntypedStorage, key
    )
    if known is not None:
        _C._release_ipc_ref_count(device, page, slot)
        return known
    lazy_init()  # receiving may be the first use of the device, of which PyTorch does not know
    _release_all_at_exit()
    storage = _C._open_storage(device, segment, offset, size, page, slot)
    reductions.shared_cache[key] = reductions.StorageWeakRef(storage)  # type: ignore[no-untyped-call]
    return storage


@functools.cache
def _release_all_at_exit() -> None:
    """Releases received memory when the process ends, because its tensors may be destroyed late or not at all."""
    util.Finalize(None, _C._release_all_ipc_ref_counts, exitpriority=0)
