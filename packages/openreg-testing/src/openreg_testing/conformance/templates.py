# SPDX-License-Identifier: BSD-3-Clause
"""Instantiates PyTorch's test templates for compilers, such as Inductor's ``CommonTemplate``, for another device.

A test file with such a class instantiates its tests for PyTorch's own devices with ``copy_tests()``; for another
backend, this module calls it. Each test calls ``self.common(function, inputs)`` and reads ``self.device``. Its inputs
are on the CPU unless their device matters to the test.
"""

from __future__ import annotations

import sys
import unittest
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

_NAME = "CommonTemplate"


def made_of_templates(module: ModuleType, device: str) -> dict[str, type[unittest.TestCase]]:
    """Returns, by name, the classes of tests for the device: one for each template that the module defines.

    Returns an empty dictionary for a module that lacks `copy_tests`, `check_model` or `TestCase`.
    """
    if not all(hasattr(module, name) for name in ("copy_tests", "check_model", "TestCase")):
        return {}
    made: dict[str, type[unittest.TestCase]] = {}
    for name, template in list(vars(module).items()):
        if isinstance(template, type) and name.endswith(_NAME) and not _is_imported(template, module):
            title = f"{name}{device.upper()}"
            attributes = {"common": _on(device, module.check_model), "device": device, "device_type": device}
            made[title] = type(title, (module.TestCase,), {**attributes, "__module__": module.__name__})
            module.copy_tests(template, made[title], device)
    return made


def _is_imported(template: type, module: ModuleType) -> bool:
    """Returns True if a template is defined in another test file, from which this module imports it."""
    home = sys.modules.get(template.__module__)
    return home is not module and getattr(home, template.__name__, None) is template


def _on(device: str, check: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that moves the model and its inputs to the device and calls `check`.

    `check` is PyTorch's comparison of a compiled function with the uncompiled one.
    """

    def common(self: Any, model: Any, example_inputs: Any, kwargs: Any = None, **options: Any) -> Any:
        if hasattr(model, "to"):
            model = model.to(device=device)
        inputs, named = pytree.tree_map_only(torch.Tensor, _mover(device), (example_inputs, kwargs))
        return check(self, model, inputs, named, **options)

    return common


def _mover(device: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns a function that copies a tensor to the device."""

    def move(value: torch.Tensor) -> torch.Tensor:
        """Returns a copy with unchanged strides and offset, because many of these tests depend on them."""
        if value.layout != torch.strided or value.device.type == torch.device(device).type or value.is_nested:
            return value.to(device)
        whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage()).to(device)
        moved = whole.as_strided(value.size(), value.stride(), value.storage_offset())
        return moved.detach().requires_grad_(value.requires_grad)

    return move
