# SPDX-License-Identifier: BSD-3-Clause
"""What files keep of a tensor besides its bytes, and the one storage method that PyTorch has for the host only."""

from __future__ import annotations

import functools
from typing import Any

import torch

from openreg_runtime import _C


def set_resident(tensor: torch.Tensor, resident: bool = True) -> None:
    """Requests the device to keep ``tensor`` in its fastest memory between uses.

    The simulated device has one kind of memory, so this changes nothing but :func:`is_resident`. ``torch.save`` and
    ``torch.load`` keep the hint, as do ``detach()`` and ``.data``; views and copies do not have it. Raises
    ``RuntimeError`` unless the tensor is on an openreg device. (Source: ``c10::BackendMeta``.)
    """
    _C._set_resident(tensor, resident)


def is_resident(tensor: torch.Tensor) -> bool:
    """Whether :func:`set_resident` was called for this tensor, or for the one from which it was saved."""
    return _C._is_resident(tensor)


def patch_storage() -> None:
    """Makes ``UntypedStorage.byteswap`` work on the device; PyTorch's would dereference a device address and crash."""
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
