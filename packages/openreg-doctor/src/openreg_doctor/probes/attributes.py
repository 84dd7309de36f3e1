# SPDX-License-Identifier: BSD-3-Clause
"""Looks up the names that PyTorch uses in the device module torch.<device>."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .device import ProbedDevice

# What PyTorch requires of these values without checking it. Values of all other names must be callable.
_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "_initialized": (lambda value: isinstance(value, bool), "should be a bool that is always up to date"),
    "Stream": (lambda value: inspect.isclass(value) and issubclass(value, torch.Stream), "should derive torch.Stream"),
    "device": (lambda value: hasattr(value, "__enter__"), "should be a class whose objects are contexts"),
    "default_generators": (lambda value: hasattr(value, "__getitem__"), "should be indexed by device"),
    "_utils": (inspect.ismodule, "should be a module"),
    "memory": (inspect.ismodule, "should be a module"),
    "amp": (inspect.ismodule, "should be a module"),
    "profiler": (inspect.ismodule, "should be a module"),
}


def look_up(device: ProbedDevice, names: Iterable[str]) -> dict[str, str]:
    """Returns what is wrong with each name of torch.<device>, by name; empty texts if nothing is.

    Names with dots lead through modules and classes. The result also has ``__name__`` if the module has a wrong name.
    """
    if device.module is None:
        return dict.fromkeys(names, f"torch.{device.name} does not exist")
    result = {name: _look_up(device, name) for name in names}
    module_name = getattr(device.module, "__name__", "")  # PyTorch accepts any object as the module
    if not module_name.endswith(f".{device.name}"):
        result["__name__"] = f"is {module_name!r}, should end in '.{device.name}'"
    return result


def _look_up(device: ProbedDevice, name: str) -> str:
    value: Any = device.module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            return f"missing ({error})"
        except Exception as error:
            return f"raises {type(error).__name__}: {error}"
    accepts, expectation = _EXPECTED.get(name, (callable, "should be callable"))
    return "" if accepts(value) else f"{expectation}, is {type(value).__name__}"
