# SPDX-License-Identifier: BSD-3-Clause
"""Tests that PyTorch writes once for every device of a compiler: Inductor's ``CommonTemplate`` and its like.

A file with such a class says itself for which devices of PyTorch its tests are made, by ``copy_tests()``; other
backends call that from outside. Each test says ``self.common(function, inputs)``, with inputs on the CPU where they are
no matter, and ``self.device``.
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
    """A class of tests for the device from each template in a module, by its name; none where there is no template."""
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
    """Whether a template is another file's, which its twin is derived from."""
    home = sys.modules.get(template.__module__)
    return home is not module and getattr(home, template.__name__, None) is template


def _on(device: str, check: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's comparison of a compiled function with the same uncompiled, with everything on the device."""

    def common(self: Any, model: Any, example_inputs: Any, kwargs: Any = None, **options: Any) -> Any:
        if hasattr(model, "to"):
            model = model.to(device=device)
        inputs, named = pytree.tree_map_only(torch.Tensor, _moved(device), (example_inputs, kwargs))
        return check(self, model, inputs, named, **options)

    return common


def _moved(device: str) -> Callable[[torch.Tensor], torch.Tensor]:
    def move(value: torch.Tensor) -> torch.Tensor:
        """A copy of the same strides and offset, which is what many of these tests are about."""
        if value.layout != torch.strided or value.device.type == torch.device(device).type or value.is_nested:
            return value.to(device)
        whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage()).to(device)
        moved = whole.as_strided(value.size(), value.stride(), value.storage_offset())
        return moved.detach().requires_grad_(value.requires_grad)

    return move
