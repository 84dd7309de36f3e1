# SPDX-License-Identifier: BSD-3-Clause
"""Devices: counting, choosing, waiting, describing.

A ``device`` argument is an index, a string such as ``"openreg:1"``, a ``torch.device``, or ``None`` for the current
device. An index out of range raises ``RuntimeError`` that names the range.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from openreg_runtime import _C, _providers

DeviceLike = int | str | torch.device | None


class DeviceProperties(NamedTuple):
    """What a device is (source: ``torch.cuda.get_device_properties``)."""

    name: str
    total_memory: int  # bytes
    multi_processor_count: int  # host cores that kernels may use
    major: int
    minor: int


def unchecked_device_index(device: DeviceLike) -> int:
    """The index that a device argument means, in range or not; raises ValueError for another type of device."""
    if isinstance(device, int):
        return device
    if device is None:
        return current_device()
    device = torch.device(device)
    if device.type != "openreg":
        raise ValueError(f"expected a device of type 'openreg', got {str(device)!r}")
    return current_device() if device.index is None else device.index


def device_index(device: DeviceLike) -> int:
    """The same; raises RuntimeError that names the range unless there is such a device."""
    index = unchecked_device_index(device)
    _C._check_device_index(index)
    return index


def _index_to_set(device: DeviceLike) -> int:
    """The same, or -1 for ``None`` and negative numbers, which mean: leave the current device."""
    if device is None or (isinstance(device, int) and device < 0):
        return -1
    return device_index(device)


def is_available() -> bool:
    """Whether there is a device. Neither initializes nor spoils a later fork.

    False if a setting is refused; a ``RuntimeWarning`` names it, because programs then go on without the device.
    """
    try:
        return _C._get_device_count() > 0
    except RuntimeError as error:
        warnings.warn(f"no openreg device is available: {error}", RuntimeWarning, stacklevel=2)
        return False


def device_count() -> int:
    """Number of devices (``OPENREG_DEVICE_COUNT``). Raises RuntimeError if a setting is refused."""
    return _C._get_device_count()


def init() -> None:
    """Initializes the device now rather than on first use."""
    lazy_init()


# What lazy_call() keeps for the time after initialization.
_queued_calls: list[Callable[[], object]] = []


def lazy_init() -> None:
    """Initializes once; raises RuntimeError in a forked child of a process that used the device."""
    _C._init()
    while _queued_calls:
        _queued_calls.pop(0)()


def lazy_call(function: Callable[[], object]) -> None:
    """Runs ``function`` now if the device is initialized, else by :func:`lazy_init` (source: ``torch.cuda``).

    PyTorch calls :func:`lazy_init` before its first operation on the device.
    """
    _queued_calls.append(function)
    if is_initialized():
        lazy_init()


def is_initialized() -> bool:
    """Whether the device was used in this process (and still can be)."""
    return _C._is_initialized()


def is_in_bad_fork() -> bool:
    """Whether this process is a forked child of one that used the device, and so cannot use it."""
    return _C._is_in_bad_fork()


def current_device() -> int:
    """Index of this thread's current device."""
    return _C._get_device()


def set_device(device: DeviceLike) -> None:
    """Makes a device current in this thread; a negative index or ``None`` changes nothing."""
    _C._maybe_exchange_device(_index_to_set(device))


def exchange_device(device: int) -> int:
    """Sets the current device and returns the one before."""
    return _C._exchange_device(device)


def maybe_exchange_device(device: int) -> int:
    """The same; a negative index changes nothing."""
    return _C._maybe_exchange_device(device)


class device:
    """Context in which a device is current; ``None`` or a negative index changes nothing.

    An object may be entered again inside itself, but by one thread only: the current device belongs to the thread.
    """

    def __init__(self, device: DeviceLike) -> None:
        self.idx = _index_to_set(device)
        self._previous: list[int] = []

    def __enter__(self) -> None:
        self._previous.append(_C._maybe_exchange_device(self.idx))

    def __exit__(self, *args: object) -> None:
        previous = self._previous.pop()
        if self.idx >= 0:
            _C._set_device(previous)


class device_of(device):
    """Context in which the device of a tensor or storage is current; objects elsewhere change nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "openreg" else None)


def synchronize(device: DeviceLike = None) -> None:
    """Waits for all work of a device. Raises ``torch.AcceleratorError`` if one of its kernels failed."""
    _C._synchronize_device(device_index(device))


def reset_device(device: DeviceLike = None) -> None:
    """Waits for a device and clears its error state and counters; tensors, streams and events stay valid.

    What skipped kernels should have written is undefined. An event that marks skipped work raises
    ``torch.AcceleratorError`` when it is queried or waited for by the host, until it is recorded again.
    """
    _C._reset_device(device_index(device))


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Name, memory and size of a device."""
    return DeviceProperties(**_C._get_device_properties(device_index(device)))


def get_device_name(device: DeviceLike = None) -> str:
    """Name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> dict[str, Any]:
    """What a device can do, as ``torch.accelerator.get_device_capability`` gives it."""
    return torch.accelerator.get_device_capability(device_index(device))


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether work on one device may address memory of the other."""
    return _C._can_access_peer(device_index(device), device_index(peer_device))


def is_bf16_supported() -> bool:
    """Whether kernels take bfloat16; they always do."""
    return torch.bfloat16 in get_device_capability()["supported_dtypes"]


class _AbsentDtypes(list[torch.dtype]):
    """An empty list; its error for a missing dtype names the package that provides it."""

    def __contains__(self, dtype: object) -> bool:
        raise NotImplementedError(_providers.missing("autocast on openreg devices", _providers.of_feature("autocast")))


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns an empty list in which looking for a dtype raises NotImplementedError. Packages with autocast replace it.

    ``torch.autocast`` reads the list even where it is disabled, as in checkpoints and compiled functions, and looks for
    a dtype only where it is enabled.
    """
    return _AbsentDtypes()
