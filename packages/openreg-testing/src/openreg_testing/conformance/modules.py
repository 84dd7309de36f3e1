# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own list of modules (ModuleInfo), as the suites run it: on the CPU, and moved to the device."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo
from torch.utils import _pytree as pytree

RTOL, ATOL = 1e-3, 1e-4


def samples_of(info: ModuleInfo, most: int) -> list[Any]:
    """A few inputs of a module on the CPU, the same ones each time."""
    torch.manual_seed(2026)
    inputs = list(info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=False))
    return [item for item in inputs if item.forward_input is not None][:most]


def moved(values: Any, device: torch.device) -> Any:
    """The same values there, each tensor a leaf that wants the gradient that it wanted."""

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, move, values)


def run(module: Any, args: Any, kwargs: Any) -> tuple[Any, list[torch.Tensor | None]]:
    """The result, and the gradients of parameters and inputs."""
    result = module(*args, **kwargs)
    outputs = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    inputs = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    wanted = [leaf for leaf in [*inputs, *module.parameters()] if leaf.requires_grad]
    if not outputs or not wanted:
        return result, []
    weights = [torch.ones_like(output) / 4 for output in outputs]
    return result, list(torch.autograd.grad(outputs, wanted, weights, allow_unused=True))


def compare(device: torch.device, info: ModuleInfo, prepared: Callable[[torch.nn.Module], Any], samples: int) -> None:
    """Runs a module that was `prepared` on the device, and as it is on the CPU: results and gradients are the same.

    Skips a module of which PyTorch's list has no input that the CPU takes in float32. Raises AssertionError.
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
        pytest.skip("PyTorch's list has no input of it that the CPU takes in float32")


def cases(info: ModuleInfo, samples: int) -> Iterator[tuple[torch.nn.Module, tuple[Any, Any]]]:
    """Modules on the CPU, which takes these inputs; as many as the first so many of PyTorch's list give."""
    for sample in samples_of(info, samples):
        torch.manual_seed(7)
        args, kwargs = moved((sample.constructor_input.args, sample.constructor_input.kwargs), torch.device("cpu"))
        module = info.module_cls(*args, **kwargs).eval()
        given = sample.forward_input.args, sample.forward_input.kwargs
        args, kwargs = moved(given, torch.device("cpu"))
        try:
            module(*args, **kwargs)  # which also gives a lazy module its parameters
        except RuntimeError:
            continue  # of float64 alone, in which PyTorch's own tests run it
        yield module, given
