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


def module() -> Any:
    """Returns the device module torch.<device>, or None."""
    return getattr(torch, device(), None)


def synchronize() -> None:
    """Synchronizes with the current device of the accelerator; does nothing if the device under test is the CPU.

    Raises the asynchronous error of a kernel, if there is one.
    """
    if device() != "cpu":
        torch.accelerator.synchronize()


def reset() -> None:
    """Makes the devices usable again after an error, by the backend's reset_device() if there is one.

    If the current device cannot be used afterwards, unusable_reason() returns why.
    """
    own = getattr(module(), "reset_device", None)
    state = "the device was lost and has no reset_device()" if own is None else "reset_device() left the device lost"
    try:
        if own is not None:
            for index in range(module().device_count()):
                own(index)
    except Exception as error:
        state = f"the device was lost, and reset_device() failed: {_first_line(error)}"
        _Current.unusable_reason = state
    try:
        synchronize()
        if device() != "cpu":
            torch.ones(1).to(device()).cpu()
    except RuntimeError as error:
        if not is_unimplemented(error):  # otherwise the backend has never supported these calls
            _Current.unusable_reason = f"{state}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def is_unimplemented(error: BaseException) -> bool:
    """Returns True if an error means that the backend has not implemented an interface."""
    return isinstance(error, NotImplementedError) or bool(_UNIMPLEMENTED.search(str(error)))


def counts_fallbacks() -> bool:
    """Returns True if the backend counts fallbacks to the CPU, with fallback_stats()."""
    return hasattr(module(), "fallback_stats")


def fallbacks() -> dict[str, int]:
    """Returns the number of fallbacks of each operator; empty if the backend does not count them."""
    if not counts_fallbacks():
        return {}
    return {operator: stats.calls for operator, stats in module().fallback_stats().items()}


def reset_fallbacks() -> None:
    """Sets the counts of fallbacks to zero, if the backend has them."""
    if counts_fallbacks():
        module().reset_fallback_stats()
