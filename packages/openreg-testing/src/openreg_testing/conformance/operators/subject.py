# SPDX-License-Identifier: BSD-3-Clause
"""The device that this process examines, and what its manifest says of it. A process examines one."""

from __future__ import annotations

import re
from typing import Any

import torch

from ..manifest import Manifest

# How PyTorch's own defaults say that a backend has not implemented something.
_UNCLAIMED = re.compile(
    r"backend doesn't support "
    r"|You should register `PrivateUse1HooksInterface`|is not linked with support for"
    r"|Could not run '[\w:.]+' with arguments from the '\w+' backend"
    r"|is not a DeviceAllocator|is not implemented for this allocator"
    r"|Unknown device type \w+ for Dlpack",
    re.IGNORECASE,
)


class _Subject:
    device = ""
    manifest = Manifest()
    spent = ""  # why nothing on the device works any more in this process


def examine_device(device: str, manifest: Manifest) -> None:
    """Chooses the device, once it is there."""
    _Subject.device, _Subject.manifest = device, manifest


def device() -> str:
    """Its name. Raises RuntimeError where none was chosen."""
    if not _Subject.device:
        raise RuntimeError("no device is examined in this process: call examine_device(name, manifest) first")
    return _Subject.device


def manifest() -> Manifest:
    """What is known of it; empty where nothing is."""
    return _Subject.manifest


def spent() -> str:
    """Why the device is of no more use to this process; empty while it is."""
    return _Subject.spent


def module(name: str) -> Any:
    """torch.<device>, or None."""
    return getattr(torch, name, None)


def synchronize(name: str) -> None:
    """Waits for the device, which may report here what a kernel did."""
    if name != "cpu":
        torch.accelerator.synchronize()


def reset(name: str) -> None:
    """Makes a device usable that an error stopped, where it offers that; else sees whether it still is."""
    own = getattr(module(name), "reset_device", None)
    if own is not None:
        own()
        return
    try:
        synchronize(name)
        if name != "cpu":
            torch.ones(1).to(name).cpu()
    except RuntimeError as error:
        if is_unclaimed(error):
            return  # it never could do this
        _Subject.spent = f"the device was lost and has no reset_device(): {str(error).splitlines()[0]}"


def is_unclaimed(error: BaseException) -> bool:
    """Whether the error says that the backend has not implemented something."""
    return isinstance(error, NotImplementedError) or bool(_UNCLAIMED.search(str(error)))


def tells_fallbacks(name: str) -> bool:
    """Whether the device counts what is computed on the CPU instead."""
    return hasattr(module(name), "fallback_stats")


def fallbacks(name: str) -> dict[str, int]:
    """How often each operator was computed on the CPU instead, where the device counts that."""
    if not tells_fallbacks(name):
        return {}
    return {operator: stats.calls for operator, stats in module(name).fallback_stats().items()}


def reset_fallbacks(name: str) -> None:
    """Begins to count anew."""
    if tells_fallbacks(name):
        module(name).reset_fallback_stats()
