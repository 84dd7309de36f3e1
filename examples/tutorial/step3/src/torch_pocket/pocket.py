# SPDX-License-Identifier: BSD-3-Clause
"""The module torch.pocket: functions that PyTorch and its users call by these names."""

import torch
from torch.accelerator import current_device_index as current_device  # noqa: F401 - they call the guard
from torch.accelerator import memory_allocated, synchronize  # noqa: F401
from torch.accelerator import set_device_index as set_device  # noqa: F401

from torch_pocket.fallback import fallback_stats, refuse_fallbacks, reset_fallback_stats  # noqa: F401


def is_available() -> bool:
    """Returns True if the device can be used."""
    return True


def device_count() -> int:
    """Returns the number of devices."""
    return torch._C._accelerator_hooks_device_count()


def is_initialized() -> bool:
    """Returns True if the device was used before; it needs no preparation."""
    return True


def _is_in_bad_fork() -> bool:
    return False


def manual_seed_all(seed: int) -> None:
    """Does nothing: the devices have no generators yet."""


class device(torch.accelerator.device_index):
    """A context in which a device is current: `with torch.pocket.device(1)`. None changes nothing."""

    def __init__(self, device: "torch.device | str | int | None"):
        if isinstance(device, (str, torch.device)):
            device = torch.device(device).index
        super().__init__(device)
