# SPDX-License-Identifier: BSD-3-Clause
"""The device under test of this process, and its manifest. A process tests one device."""

from __future__ import annotations

import re
from typing import Any

import torch

from ..manifest import Manifest

# Messages of PyTorch's defaults for interfaces that a backend has not implemented.
_UNCLAIMED = re.compile(
    r"backend doesn't support "
    r"|You should register `PrivateUse1HooksInterface`|is not linked with support for"
    r"|Could not run '[\w:.]+' with arguments from the '\w+' backend"
    r"|is not a DeviceAllocator|is not implemented for this allocator"
    r"|Unknown device type \w+ for Dlpack",
    re.IGNORECASE,
)


class _Subject:
    """The device under test, as global state of this process."""

    device = ""
    manifest = Manifest()
    spent = ""  # the reason why this process can no longer use the device


def examine_device(device: str, manifest: Manifest) -> None:
    """Sets the device under test and its manifest. The backend must have been imported."""
    _Subject.device, _Subject.manifest = device, manifest


def device() -> str:
    """Returns the name of the device under test. Raises RuntimeError if none is set."""
    if not _Subject.device:
        raise RuntimeError("this process has no device under test; call examine_device(name, manifest) first")
    return _Subject.device


def manifest() -> Manifest:
    """Returns the manifest of the device under test; an empty one if none is set."""
    return _Subject.manifest


def spent() -> str:
    """Returns the reason why this process can no longer use the device, or an empty text."""
    return _Subject.spent


def module(name: str) -> Any:
    """Returns the device module torch.<device>, or None."""
    return getattr(torch, name, None)


def synchronize(name: str) -> None:
    """Synchronizes with the current device. Raises the asynchronous error of a kernel. Does nothing for the CPU."""
    if name != "cpu":
        torch.accelerator.synchronize()


def reset(name: str) -> None:
    """Calls the backend's reset_device(), which makes a device usable again after an error.

    If the backend has no such function, checks that the device is usable. If it is not, spent() returns the reason.
    """
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
            return  # the backend has never supported these calls
        _Subject.spent = f"the device was lost and has no reset_device(): {str(error).splitlines()[0]}"


def is_unclaimed(error: BaseException) -> bool:
    """Returns True if an error means that the backend has not implemented an interface."""
    return isinstance(error, NotImplementedError) or bool(_UNCLAIMED.search(str(error)))


def tells_fallbacks(name: str) -> bool:
    """Returns True if the backend counts fallbacks to the CPU, with fallback_stats()."""
    return hasattr(module(name), "fallback_stats")


def fallbacks(name: str) -> dict[str, int]:
    """Returns the number of fallbacks of each operator; empty if the backend does not count them."""
    if not tells_fallbacks(name):
        return {}
    return {operator: stats.calls for operator, stats in module(name).fallback_stats().items()}


def reset_fallbacks(name: str) -> None:
    """Sets the counts of fallbacks to zero, if the backend has them."""
    if tells_fallbacks(name):
        module(name).reset_fallback_stats()
