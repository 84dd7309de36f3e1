# SPDX-License-Identifier: BSD-3-Clause
"""Provides the residency hint of a tensor, which ``torch.save`` stores, and the storage method ``byteswap``.

The hint is an example of metadata that a backend adds to tensors.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from openreg_runtime import _C


def set_resident(tensor: torch.Tensor, resident: bool = True) -> None:
    """Sets a hint that the device should keep ``tensor`` in its fastest memory between uses.

    The simulated device has one kind of memory, so this only changes the result of :func:`is_resident`. ``torch.save``,
    ``torch.load``, ``detach()`` and ``.data`` preserve the hint; views and copies do not have it. PyTorch stores it as
    ``c10::BackendMeta``. Raises ``RuntimeError`` unless the tensor is on an openreg device.
    """
    _C._set_resident(tensor, resident)


def is_resident(tensor: torch.Tensor) -> bool:
    """Returns True if the tensor has the hint of :func:`set_resident`, possibly from its file."""
    return _C._is_resident(tensor)


def patch_storage() -> None:
    """Makes ``UntypedStorage.byteswap`` work on the device. PyTorch's method would crash on a device address."""
    torch.UntypedStorage.byteswap = _wrap_byteswap(torch.UntypedStorage.byteswap)  # type: ignore[method-assign]


def _wrap_byteswap(original: Any) -> Any:
    @functools.wraps(original)
    def byteswap(self: torch.UntypedStorage, dtype: torch.dtype) -> None:
        if self.device.type != "openreg":
            original(self, dtype)
            return
        host = self.cpu()  # type: ignore[no-untyped-call]
        original(host, dtype)
        self.copy_(host)

    return byteswap
