# SPDX-License-Identifier: BSD-3-Clause
"""Functions that count, select, synchronize and describe devices.

A ``device`` argument is an index, a string such as ``"openreg:1"``, a ``torch.device``, or ``None`` for the current
device. For an index out of range, functions raise RuntimeError, which names the range.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from openreg_runtime import _C, _providers

DeviceLike = int | str | torch.device | None


class DeviceProperties(NamedTuple):
    """The properties of a device, of which ``torch.cuda.get_device_properties`` has more."""

    name: str
    total_memory: int  # bytes
    multi_processor_count: int  # host cores that kernels may use
    major: int  # version of the driver's interface
    minor: int


def unchecked_device_index(device: DeviceLike, optional: bool = True) -> int:
    """Returns the index of a device argument, in range or not.

    Raises ValueError for another type of device, and for ``None`` unless ``optional``.
    """
    if isinstance(device, int):
        return device
    if device is None and optional:
        return current_device()
    if device is None or torch.device(device).type != "openreg":
        forms = "an index, 'openreg:N' or None" if optional else "an index or 'openreg:N'"
        got = device if device is None else repr(str(device))
        raise ValueError(f"torch.openreg: expected a device of type 'openreg', but got {got}; give {forms}")
    index = torch.device(device).index
    return current_device() if index is None else index


def device_index(device: DeviceLike) -> int:
    """Returns the index of a device argument. Raises RuntimeError, which names the range, if it is out of range."""
    index = unchecked_device_index(device)
    _C._check_device_index(index)
    return index


def _index_to_set(device: DeviceLike) -> int:
    """Same as :func:`device_index`, except that it returns -1 for ``None`` and negative numbers."""
    if device is None or (isinstance(device, int) and device < 0):
        return -1
    return device_index(device)


def is_available() -> bool:
    """Returns True if there is a device. Does not initialize the device, so that the process can still fork.

    Returns False if a setting is invalid. Then a ``RuntimeWarning`` names it, because programs continue without the
    device.
    """
    try:
        return _C._get_device_count() > 0
    except RuntimeError as error:
        warnings.warn(f"no openreg device is available: {error}", RuntimeWarning, stacklevel=2)
        return False


def device_count() -> int:
    """Returns the number of devices (``OPENREG_DEVICE_COUNT``). Raises RuntimeError if a setting is invalid."""
    return _C._get_device_count()


def init() -> None:
    """Initializes the device now rather than on first use."""
    lazy_init()


# The functions that lazy_call() has deferred until initialization.
_queued_calls: list[Callable[[], object]] = []
# Held while they run. Reentrant, because they may use the device. A forked child never waits for it: if the device is
# initialized in the parent, lazy_init() raises in the child before.
_queue_lock = threading.RLock()


def lazy_init() -> None:
    """Initializes the device, if that has not been done, and runs the functions of :func:`lazy_call`.

    If another thread runs them, returns after that. Raises RuntimeError in a forked child of a process that used the
    device.
    """
    _C._init()
    with _queue_lock:
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
    """Returns True if the device is initialized. False in a forked child, which cannot use it."""
    return _C._is_initialized()


def is_in_bad_fork() -> bool:
    """Returns True in a forked child of a process that used the device. Such a child cannot use it."""
    return _C._is_in_bad_fork()


def current_device() -> int:
    """Returns the index of this thread's current device."""
    return _C._get_device()


def set_device(device: DeviceLike) -> None:
    """Makes a device the current device of this thread; a negative index or ``None`` changes nothing."""
    _C._maybe_exchange_device(_index_to_set(device))


def exchange_device(device: int) -> int:
    """Sets the current device of this thread and returns the previous one."""
    return _C._exchange_device(device)


def maybe_exchange_device(device: int) -> int:
    """Same as :func:`exchange_device`, except that a negative index changes nothing."""
    return _C._maybe_exchange_device(device)


class device:
    """A context in which a device is current; ``None`` or a negative index changes nothing.

    A context may be entered again before it is left, but only by one thread, because each thread has a current device.
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
    """A context in which the device of a tensor or storage is current; objects of other device types change nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "openreg" else None)


def synchronize(device: DeviceLike = None) -> None:
    """Blocks until all tasks of a device are complete. Raises ``torch.AcceleratorError`` if a kernel has failed."""
    _C._synchronize_device(device_index(device))


def reset_device(device: DeviceLike = None) -> None:
    """Synchronizes with a device and clears its error state and counters. Tensors, streams and events stay valid.

    The content of memory to which skipped kernels should have written is undefined. If the record of an event was
    skipped, queries of the event and waits of the host raise ``torch.AcceleratorError`` until it is recorded again.
    """
    _C._reset_device(device_index(device))


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Returns the name, memory and other properties of a device."""
    return DeviceProperties(**_C._get_device_properties(device_index(device)))


def get_device_name(device: DeviceLike = None) -> str:
    """Returns the name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> dict[str, Any]:
    """Returns the capabilities of a device, as ``torch.accelerator.get_device_capability`` does."""
    return torch.accelerator.get_device_capability(device_index(device))


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Returns True if tasks of ``device`` may access memory of ``peer_device``."""
    return _C._can_access_peer(device_index(device), device_index(peer_device))


def is_bf16_supported(including_emulation: bool = True) -> bool:  # noqa: ARG001
    """Returns True, because kernels always support bfloat16, without emulation."""
    return torch.bfloat16 in get_device_capability()["supported_dtypes"]


class _AbsentDtypes(list[torch.dtype]):
    """An empty list in which a search raises NotImplementedError, which names the package that provides autocast."""

    def __contains__(self, dtype: object) -> bool:
        raise NotImplementedError(_providers.missing("autocast on openreg devices", _providers.of_feature("autocast")))


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns an empty list in which a search for a dtype raises NotImplementedError.

    A package with autocast replaces this function. ``torch.autocast`` calls it even if autocast is disabled, as in
    checkpoints and compiled functions. It searches the list only if autocast is enabled, so only then the error occurs.
    """
    return _AbsentDtypes()
