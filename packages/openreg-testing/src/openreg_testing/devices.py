# SPDX-License-Identifier: BSD-3-Clause
"""What can be asked of all devices of one type: what they did, what they hold, whether they are well.

Any backend is asked through ``torch.accelerator`` and its module ``torch.<type>``. openreg counts launches, copies and
fallbacks as well; ``Backend.unknown`` names what a backend does not tell.
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

from openreg_testing.libraries import OF_TORCH, module_of

if TYPE_CHECKING:
    import torch

_INSTALL = "pip install openreg-testing[device]"
# Autograd's thread drops the graph a moment after backward() returned, on a busy machine a long one.
_TRIES, _PAUSE = 50, 0.01


@dataclass(frozen=True)
class Counts:
    """What the devices have done since their counters began; None where the backend does not tell."""

    launches: int | None = None
    copies: int | None = None
    bytes_copied: int | None = None
    fallbacks: dict[str, int] | None = field(default=None)

    def since(self, before: Counts) -> Counts:
        """What came in between."""
        fallbacks = self.fallbacks
        if fallbacks is not None:
            earlier = before.fallbacks or {}
            fallbacks = {name: _grown(calls, earlier.get(name, 0)) or 0 for name, calls in fallbacks.items()}
            fallbacks = {name: calls for name, calls in fallbacks.items() if calls}
        return Counts(
            _grown(self.launches, before.launches),
            _grown(self.copies, before.copies),
            _grown(self.bytes_copied, before.bytes_copied),
            fallbacks,
        )


def _grown(now: int | None, before: int | None) -> int | None:
    """A counter that stands lower than before was reset in between: then what it shows is all that is known."""
    if now is None:
        return None
    return now - before if before is not None and now >= before else now


class Backend:
    """The devices of one type. Making the object initialises none of them."""

    def __init__(self, device_type: str) -> None:
        import torch

        self.type = device_type
        self._torch = torch
        self._module = torch.get_device_module(device_type)

    @property
    def unknown(self) -> dict[str, str]:
        """What the backend does not tell, and why."""
        wanted = {
            "launches": "device_stats",
            "fallbacks": "fallback_stats",
            "host waits": "set_sync_debug_mode",
            "memory": "memory_allocated",
        }
        missing = {what: name for what, name in wanted.items() if not hasattr(self._module, name)}
        if "memory" in missing and self._is_accelerator():
            del missing["memory"]
        return {what: f"torch.{self.type} has no {name}" for what, name in missing.items()}

    @property
    def count(self) -> int:
        """Number of devices."""
        return int(self._module.device_count())

    def in_use(self) -> bool:
        """Whether this process used a device; True for a backend that does not tell."""
        initialised = getattr(self._module, "is_initialized", None)
        return bool(initialised()) if initialised is not None else True

    def counts(self) -> Counts:
        """The counters of all devices together. Work that runs still is not waited for."""
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
        """Bytes that tensors hold on all devices; None where nobody tells."""
        return self._memory("memory_allocated")

    def peak(self) -> int | None:
        """Most bytes that tensors held since ``reset_peak``, each device's own most added up."""
        return self._memory("max_memory_allocated")

    def reset_peak(self) -> None:
        """Lets the peaks start anew."""
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
        """Waits for all devices; the error of the first that has one, empty if all are well."""
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
        """Clears the error states of all devices; what is left of them, empty if they can be used again."""
        reset = getattr(self._module, "reset_device", None)
        for index in range(self.count):
            if self._wait(index) and reset is not None:
                try:
                    reset(index)
                except Exception as error:
                    return f"{self.type}:{index}: {type(error).__name__}: {error}"
        return self.wait()

    def refuse_fallbacks(self) -> AbstractContextManager[Any] | None:
        """A context in which a fallback is an error on the line that caused it; None where there is no such thing."""
        mode = getattr(self._module, "fallback_mode", None)
        return mode("error") if mode is not None else None

    @contextmanager
    def warning_of_waits(self) -> Iterator[None]:
        """A context in which the backend warns of each wait of the host, if it can."""
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
        """Bytes that tensors hold when all that nobody refers to is freed; returns as soon as it is no more."""
        self.wait()
        held = self.allocated()
        if held is None or held <= expected:
            return held
        for collects in (True, *[False] * _TRIES, True):  # at last what the graph of a backward pass has let go
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
        """The tensors of these devices that Python code can reach."""
        with self._torch._C.DisableTorchFunction():  # neither modes nor subclasses tell another device
            # type(), as isinstance() runs code of objects that pretend to be another's.
            found = (item for item in gc.get_objects() if issubclass(type(item), self._torch.Tensor))
            return [item for item in found if item.device.type == self.type]


def available() -> str:
    """The devices that tests could run on, in words."""
    import torch

    found = ["cpu"]
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    for device_type in dict.fromkeys([accelerator.type if accelerator else "", "cuda"]):
        if device_type and torch.get_device_module(device_type).is_available():
            count = torch.get_device_module(device_type).device_count()
            found += [f"{device_type}:{index}" for index in range(count)]
    return ", ".join(found)


def load_torch(asker: str) -> Any:
    """The module torch. Raises UsageError, which begins with the option or fixture that asks, if it does not load."""
    try:
        import torch
    except ImportError as error:
        if "torch" in sys.modules:
            raise
        problem = f"{asker}: PyTorch is needed, and does not load: {error}"
        raise pytest.UsageError(f"{problem}; to have it, with the device: {_INSTALL}") from None
    return torch


def require(name: str, option: str) -> None:
    """Raises UsageError unless there is a device of that name; says what there is."""
    torch = load_torch(f"{option} {name}")
    device_type, _, index = name.partition(":")
    module = module_of(device_type)
    if device_type not in OF_TORCH and not hasattr(torch, device_type) and module != "torch":
        try:
            __import__(module)
        except Exception as error:
            raise pytest.UsageError(f"{option} {name}: {module}, which brings it, does not load: {error}") from None
    try:
        torch.device(name)
    except RuntimeError:
        known = hasattr(torch, device_type) and device_type != "openreg"
        why = f"{name!r} is no device of PyTorch" if known or device_type != "openreg" else "openreg is not installed"
        if device_type == "openreg" and hasattr(torch, "openreg"):
            why = f"{name!r} is not the form of a device's name: openreg, openreg:1"
        hint = f"; to have it: {_INSTALL}" if why == "openreg is not installed" else ""
        raise pytest.UsageError(f"{option} {name}: {why}. Available: {available()}{hint}") from None
    problem = _absence(device_type, index)
    if problem:
        raise pytest.UsageError(f"{option} {name}: {problem}. Available: {available()}")


def _absence(device_type: str, index: str) -> str:
    """Why a well-formed name means no device of this machine; empty if it does."""
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
    """The type of the accelerator of this process; empty without torch or without one."""
    try:
        import torch
    except ImportError:
        return ""
    current = torch.accelerator.current_accelerator(check_available=True)
    return current.type if current is not None else ""
