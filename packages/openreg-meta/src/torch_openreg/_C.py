# SPDX-License-Identifier: BSD-3-Clause
"""Provides private functions under the names that they have in PyTorch's example backend, for code that calls them."""

from __future__ import annotations

import torch

import openreg_runtime._C
from openreg_runtime import openreg

__all__ = [
    "_exchangeDevice",
    "_get_default_generator",
    "_get_device",
    "_get_device_count",
    "_init",
    "_isInBadFork",
    "_set_device",
]

_get_device = openreg.current_device
_get_device_count = openreg.device_count
_init = openreg.init
_isInBadFork = openreg_runtime._C._is_in_bad_fork  # noqa: N816  (the name is given)
_set_device = openreg.set_device


def _exchangeDevice(device: int) -> int:  # noqa: N802
    """Sets the current device and returns the previous one. Does nothing for a negative index, and returns -1."""
    return openreg_runtime._C._exchange_device(device) if device >= 0 else -1


def _get_default_generator(device: int) -> torch.Generator:
    """Returns the default generator of a device. Raises RuntimeError if the index is out of range or negative."""
    return openreg_runtime._C._get_default_generator(device)
