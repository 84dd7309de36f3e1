# SPDX-License-Identifier: BSD-3-Clause
"""The device under test, as global state of this process, and functions that call its module torch.<device>.

A process tests one device. The device's manifest lists the backend's expected failures.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from ..manifest import Manifest

# Matches PyTorch's errors about interfaces that a backend has not implemented.
_UNIMPLEMENTED = re.compile(
    r"backend doesn't support "
    r"|You should register `PrivateUse1HooksInterface`|is not linked with support for"
    r"|Could not run '[\w:.]+' with arguments from the '\w+' backend"
    r"|is not a DeviceAllocator|is not implemented for this allocator"
    r"|Unknown device type \w+ for Dlpack",
    re.IGNORECASE,
)


class _Current:
    """The device under test and its state."""

    device = ""  # empty until set_device() is called
    manifest = Manifest()
    unusable_reason = ""  # the reason why this process can no longer use the device; empty while it can


def set_device(device: str, manifest: Manifest) -> None:
    """Sets the device under test and its manifest. The backend must have been imported."""
    _Current.device, _Current.manifest = device, manifest


def device() -> str:
    """Returns the name of the device under test. Raises RuntimeError if none is set."""
    if not _Current.device:
        raise RuntimeError("this process has no device under test; call set_device(name, manifest) first")
    return _Current.device


def manifest() -> Manifest:
    """Returns the manifest of the device under test; an empty one if none is set."""
    return _Current.manifest


def unusable_reason() -> str:
    """Returns the reason why this process can no longer use the device, or an empty text."""
    return _Current.unusable_reason


def module(name: str) -> Any:
    """Returns the device module torch.<device>, or None."""
    return getattr(torch, name, None)


def synchronize(name: str) -> None:
    """Synchronizes with the current device of the accelerator, unless ``name`` is "cpu".

    Raises the asynchronous error of a kernel, if there is one.
    """
    if name != "cpu":
        torch.accelerator.synchronize()


def reset(name: str) -> None:
    """Calls the backend's reset_device(), which makes a device usable again after an error.

    If the backend has no such function, checks that the device is usable. If it is not, unusable_reason() returns why.
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
        if is_unimplemented(error):
            return  # the backend has never supported these calls
        _Current.unusable_reason = f"the device was lost and has no reset_device(): {str(error).splitlines()[0]}"


def is_unimplemented(error: BaseException) -> bool:
    """Returns True if an error means that the backend has not implemented an interface."""
    return isinstance(error, NotImplementedError) or bool(_UNIMPLEMENTED.search(str(error)))


def counts_fallbacks(name: str) -> bool:
    """Returns True if the backend counts fallbacks to the CPU, with fallback_stats()."""
    return hasattr(module(name), "fallback_stats")


def fallbacks(name: str) -> dict[str, int]:
    """Returns the number of fallbacks of each operator; empty if the backend does not count them."""
    if not counts_fallbacks(name):
        return {}
    return {operator: stats.calls for operator, stats in module(name).fallback_stats().items()}


def reset_fallbacks(name: str) -> None:
    """Sets the counts of fallbacks to zero, if the backend has them."""
    if counts_fallbacks(name):
        module(name).reset_fallback_stats()
