# SPDX-License-Identifier: BSD-3-Clause
"""The counters, memory and error state of all devices of one type; and the check of device names in options.

Every backend is read through ``torch.accelerator`` and its module ``torch.<type>``. openreg also counts launches,
copies and fallbacks. ``WatchedDevices.unknown`` lists what a backend does not measure.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from openreg_testing.plugin.libraries import OF_TORCH, module_of

if TYPE_CHECKING:
    import torch

INSTALL = 'pip install "openreg-testing[device]"'
# settle() tries several times, because autograd's thread may release the graph some time after backward() has returned.
# The pause is in seconds.
_TRIES, _PAUSE = 50, 0.01


@dataclass(frozen=True)
class Counts:
    """The counters of the devices since their last reset; None for each that the backend does not have."""

    launches: int | None = None
    copies: int | None = None
    bytes_copied: int | None = None
    fallbacks: dict[str, int] | None = field(default=None)

    def since(self, before: Counts) -> Counts:
        """Returns the increase of each counter since ``before``."""
        fallbacks = self.fallbacks
        if fallbacks is not None:
            earlier = before.fallbacks or {}
            fallbacks = {name: _increase(calls, earlier.get(name, 0)) or 0 for name, calls in fallbacks.items()}
            fallbacks = {name: calls for name, calls in fallbacks.items() if calls}
        return Counts(
            _increase(self.launches, before.launches),
            _increase(self.copies, before.copies),
            _increase(self.bytes_copied, before.bytes_copied),
            fallbacks,
        )


def _increase(now: int | None, before: int | None) -> int | None:
    """Returns the increase of a counter; its value if it is lower than before, because it was reset in between."""
    if now is None:
        return None
    return now - before if before is not None and now >= before else now


class WatchedDevices:
    """All devices of one type, such as "openreg". The constructor does not initialize them."""

    def __init__(self, device_type: str) -> None:
        import torch

        self.type = device_type
        self._torch = torch
        self._module = torch.get_device_module(device_type)

    @property
    def unknown(self) -> dict[str, str]:
        """What the backend does not measure, each with the reason."""
        functions = {
            "launches": "device_stats",
            "fallbacks": "fallback_stats",
            "host waits": "set_sync_debug_mode",
            "memory": "memory_allocated",
        }
        missing = {what: name for what, name in functions.items() if not hasattr(self._module, name)}
        if "memory" in missing and self._is_accelerator():
            del missing["memory"]
        return {what: f"torch.{self.type} has no {name}" for what, name in missing.items()}

    @property
    def count(self) -> int:
        """The number of devices."""
        return int(self._module.device_count())

    def in_use(self) -> bool:
        """Returns True if this process has used a device, or if the backend has no ``is_initialized``."""
        is_initialized = getattr(self._module, "is_initialized", None)
        return bool(is_initialized()) if is_initialized is not None else True

    def counts(self) -> Counts:
        """Returns the counters of all devices together, without synchronizing the devices."""
        stats, fallbacks = getattr(self._module, "device_stats", None), getattr(self._module, "fallback_stats", None)
        counts: dict[str, Any] = {}
        if stats is not None:
            every = [stats(index) for index in range(self.count)]
            for name in ("launches", "copies", "bytes_copied"):
                counts[name] = sum(getattr(item, name) for item in every)
        if fallbacks is not None:
            counts["fallbacks"] = {name: entry.calls for name, entry in fallbacks().items()}
        return Counts(**counts)

    def allocated(self) -> int | None:
        """Returns the bytes that tensors hold on all devices, or None if the backend does not count them."""
        return self._memory("memory_allocated")

    def peak(self) -> int | None:
        """Returns the sum of the devices' peak bytes since ``reset_peak``, or None if the backend counts none."""
        return self._memory("max_memory_allocated")

    def reset_peak(self) -> None:
        """Resets the peaks of all devices."""
        self._memory("reset_peak_memory_stats")

    def _memory(self, name: str) -> int | None:
        if not self.in_use():
            return 0
        source = self._torch.accelerator if self._is_accelerator() else self._module
        function = getattr(source, name, None)
        if function is None:
            return None
        try:
            return sum(function(index) or 0 for index in range(self.count))
        except (RuntimeError, NotImplementedError, AttributeError):  # a backend without a caching allocator
            return None

    def _is_accelerator(self) -> bool:
        current = self._torch.accelerator.current_accelerator()
        return current is not None and current.type == self.type

    def wait(self) -> str:
        """Synchronizes all devices; returns the error of the first device that has one, empty if none has."""
        if not self.in_use():
            return ""
        errors = [self._wait(index) for index in range(self.count)]
        return next(filter(None, errors), "")

    def _wait(self, index: int) -> str:
        try:
            source = self._torch.accelerator if self._is_accelerator() else self._module
            source.synchronize(index)
        except Exception as error:
            return f"{self.type}:{index}: {type(error).__name__}: {error}"
        return ""

    def recover(self) -> str:
        """Clears the error states of all devices; returns an error that remains, empty if all devices are usable."""
        reset = getattr(self._module, "reset_device", None)
        for index in range(self.count):
            if self._wait(index) and reset is not None:
                try:
                    reset(index)
                except Exception as error:
                    return f"{self.type}:{index}: {type(error).__name__}: {error}"
        return self.wait()

    def refuse_fallbacks(self) -> AbstractContextManager[Any] | None:
        """Returns a context manager in which a call that falls back raises; None if the backend has none."""
        mode = getattr(self._module, "fallback_mode", None)
        return mode("error") if mode is not None else None

    @contextmanager
    def warning_of_waits(self) -> Iterator[None]:
        """Returns a context manager in which the backend warns of each host wait, if it supports that."""
        switch, read = (getattr(self._module, f"{verb}_sync_debug_mode", None) for verb in ("set", "get"))
        if switch is None or read is None:
            yield
            return
        before = read()
        switch(1)
        try:
            yield
        finally:
            switch(before)

    def settle(self, expected: int) -> int | None:
        """Collects garbage, and waits up to about half a second until tensors hold at most ``expected`` bytes.

        Returns the bytes that tensors hold then, or None if the backend does not count them.
        """
        self.wait()
        held = self.allocated()
        if held is None or held <= expected:
            return held
        for collects in (True, *[False] * _TRIES, True):  # the second frees what a backward graph still held
            if collects:
                gc.collect()
            else:
                time.sleep(_PAUSE)
            self.wait()
            held = self.allocated()
            if held is None or held <= expected:
                return held
        return held

    def tensors(self) -> list[torch.Tensor]:
        """Returns the tensors on these devices that Python objects can reach."""
        with self._torch._C.DisableTorchFunction():  # modes and subclasses may report another device
            # type() instead of isinstance(), which runs code of objects that override __class__.
            found = (item for item in gc.get_objects() if issubclass(type(item), self._torch.Tensor))
            return [item for item in found if item.device.type == self.type]


def available() -> str:
    """Returns the names of the devices on which tests can run, separated by commas."""
    import torch

    found = ["cpu"]
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    for device_type in dict.fromkeys([accelerator.type if accelerator else "", "cuda"]):
        if device_type and torch.get_device_module(device_type).is_available():
            count = torch.get_device_module(device_type).device_count()
            found += [f"{device_type}:{index}" for index in range(count)]
    return ", ".join(found)


def load_torch(required_by: str) -> Any:
    """Returns the module torch. Raises UsageError if it cannot be imported.

    ``required_by`` is the option or fixture that needs torch, with which the message begins.
    """
    try:
        import torch
    except ImportError as error:
        if "torch" in sys.modules:
            raise
        problem = f"{required_by}: PyTorch cannot be imported: {error}"
        raise pytest.UsageError(f"{problem}; to install it with the device: {INSTALL}") from None
    return torch


def require(name: str, option: str) -> None:
    """Raises UsageError, with the available devices, unless there is a device of that name.

    ``option`` is the option or environment variable that named the device.
    """
    torch = load_torch(f"{option} {name}")
    device_type, _, index = name.partition(":")
    module = module_of(device_type)  # whose import loads the backend
    # OF_TORCH lists the device types of torch itself, which need no import.
    if device_type not in OF_TORCH and not hasattr(torch, device_type) and module != "torch":
        try:
            __import__(module)
        except Exception as error:
            problem = f"{module}, which loads its backend, cannot be imported: {error}"
            raise pytest.UsageError(f"{option} {name}: {problem}") from None
    try:
        torch.device(name)
    except RuntimeError:
        why = f"{name!r} is no device of PyTorch" if device_type != "openreg" else "openreg is not installed"
        if device_type == "openreg" and hasattr(torch, "openreg"):
            why = f"{name!r} is no valid device name; accepted: openreg, openreg:1"
        hint = f"; to install it: {INSTALL}" if why == "openreg is not installed" else ""
        raise pytest.UsageError(f"{option} {name}: {why}. Available: {available()}{hint}") from None
    problem = _absence(device_type, index)
    if problem:
        raise pytest.UsageError(f"{option} {name}: {problem}. Available: {available()}")


def _absence(device_type: str, index: str) -> str:
    """Returns the reason why this machine lacks the device of a valid name; empty if it has the device."""
    import torch

    if device_type == "cpu":
        return "" if index in ("", "0") else "there is one cpu"
    module: Any = getattr(torch, device_type, None)
    if module is None or not hasattr(module, "is_available") or not hasattr(module, "device_count"):
        return f"torch.{device_type} has no devices to run tests on"
    try:
        count = module.device_count()
    except RuntimeError as error:
        return str(error)
    if count == 0 or not module.is_available():
        return f"this machine has no {device_type} device"
    if index and int(index) >= count:
        return f"there {'is' if count == 1 else 'are'} {count} of this type, counted from 0"
    return ""


def accelerator_type() -> str:
    """Returns the type of this process's accelerator; empty without an accelerator or without torch."""
    try:
        import torch
    except ImportError:
        return ""
    current = torch.accelerator.current_accelerator(check_available=True)
    return current.type if current is not None else ""
