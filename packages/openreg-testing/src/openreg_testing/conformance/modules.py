# SPDX-License-Identifier: BSD-3-Clause
"""Compares the device with the CPU for the modules of PyTorch's own list (ModuleInfo)."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo
from torch.utils import _pytree as pytree

RTOL, ATOL = 1e-3, 1e-4


def samples_of(info: ModuleInfo, most: int) -> list[Any]:
    """Returns at most `most` inputs of a module on the CPU; every call returns equal ones."""
    torch.manual_seed(2026)
    inputs = list(info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=False))
    return [item for item in inputs if item.forward_input is not None][:most]


def moved(values: Any, device: torch.device) -> Any:
    """Returns the values with a copy of each tensor: a leaf on the device with an unchanged requires_grad."""

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, move, values)


def run(module: Any, args: Any, kwargs: Any) -> tuple[Any, list[torch.Tensor | None]]:
    """Returns the result, and the gradients of all inputs and parameters that require one."""
    result = module(*args, **kwargs)
    outputs = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    inputs = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    differentiated = [leaf for leaf in [*inputs, *module.parameters()] if leaf.requires_grad]
    if not outputs or not differentiated:
        return result, []
    weights = [torch.ones_like(output) / 4 for output in outputs]
    return result, list(torch.autograd.grad(outputs, differentiated, weights, allow_unused=True))


def compare(device: torch.device, info: ModuleInfo, prepared: Callable[[torch.nn.Module], Any], samples: int) -> None:
    """Compares results and gradients of `prepared(module)` on the device with those of the module on the CPU.

    `prepared` is torch.compile, or a function that returns the module unchanged. Raises AssertionError if results or
    gradients differ. Skips the test if the CPU accepts none of the listed inputs in float32.
    """
    compared = 0
    for module, given in cases(info, samples):
        expected = run(module, *moved(given, torch.device("cpu")))
        there = prepared(copy.deepcopy(module).to(device))
        found = run(there, *moved(given, device))
        compared += 1
        for leaf in pytree.tree_leaves(found[0]):
            if isinstance(leaf, torch.Tensor):
                assert leaf.device == device, f"a result is on {leaf.device}"
        here = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().cpu(), found)
        plain = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach(), expected)
        torch.testing.assert_close(here[0], plain[0], rtol=RTOL, atol=ATOL, equal_nan=True)
        for number, (one, other) in enumerate(zip(here[1], plain[1], strict=True)):
            assert (one is None) == (other is None), f"gradient {number} is missing on one of the devices"
            if one is not None:
                torch.testing.assert_close(one, other, rtol=RTOL, atol=ATOL, equal_nan=True)
    if not compared:
        pytest.skip(f"PyTorch's list has no input of {info.name} that the CPU accepts in float32")


def cases(info: ModuleInfo, samples: int) -> Iterator[tuple[torch.nn.Module, tuple[Any, Any]]]:
    """Yields a module on the CPU and its input, for each of the first `samples` listed inputs that the CPU accepts."""
    for sample in samples_of(info, samples):
        torch.manual_seed(7)
        args, kwargs = moved((sample.constructor_input.args, sample.constructor_input.kwargs), torch.device("cpu"))
        module = info.module_cls(*args, **kwargs).eval()
        given = sample.forward_input.args, sample.forward_input.kwargs
        args, kwargs = moved(given, torch.device("cpu"))
        try:
            module(*args, **kwargs)  # also initializes the parameters of a lazy module
        except RuntimeError:
            continue  # the CPU rejects this input in float32; PyTorch's own tests use float64
        yield module, given
