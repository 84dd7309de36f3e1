# SPDX-License-Identifier: BSD-3-Clause
"""Every module of PyTorch's own list (ModuleInfo): on the device it gives what the CPU gives, and gradients."""

import copy
from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.utils import _pytree as pytree

from openreg_testing.conformance.harness import Device, promise

SAMPLES = 4  # per module
RTOL, ATOL = 1e-3, 1e-4


def samples_of(info: ModuleInfo) -> list[Any]:
    """A few inputs of a module on the CPU, the same ones each time."""
    torch.manual_seed(2026)
    inputs = list(info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=False))
    return [item for item in inputs if item.forward_input is not None][:SAMPLES]


def moved(values: Any, device: torch.device) -> Any:
    """The same values there, each tensor a leaf that wants the gradient that it wanted."""

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, move, values)


def run(module: torch.nn.Module, args: Any, kwargs: Any) -> tuple[Any, list[torch.Tensor | None]]:
    """The result, and the gradients of parameters and inputs."""
    result = module(*args, **kwargs)
    outputs = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    inputs = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    wanted = [leaf for leaf in [*inputs, *module.parameters()] if leaf.requires_grad]
    if not outputs or not wanted:
        return result, []
    weights = [torch.ones_like(output) / 4 for output in outputs]
    return result, list(torch.autograd.grad(outputs, wanted, weights, allow_unused=True))


@promise("registration.a backward pass")
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_a_module_gives_what_the_cpu_gives(device: Device, info: ModuleInfo) -> None:
    """A module on the device gives the results and gradients of the same module on the CPU, in float32."""
    compared = 0
    for sample in samples_of(info):
        torch.manual_seed(7)
        args, kwargs = moved((sample.constructor_input.args, sample.constructor_input.kwargs), torch.device("cpu"))
        module = info.module_cls(*args, **kwargs).eval()
        given = sample.forward_input.args, sample.forward_input.kwargs
        args, kwargs = moved(given, torch.device("cpu"))
        try:
            module(*args, **kwargs)  # which also gives a lazy module its parameters
        except RuntimeError:
            continue  # of float64 alone, in which PyTorch's own tests run it
        there = copy.deepcopy(module).to(device.first)
        expected = run(module, args, kwargs)
        compared += 1
        found = run(there, *moved(given, device.first))
        for leaf in pytree.tree_leaves(found[0]):
            if isinstance(leaf, torch.Tensor):
                assert leaf.device == device.first, f"a result is on {leaf.device}"
        here = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().cpu(), found)
        plain = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach(), expected)
        torch.testing.assert_close(here[0], plain[0], rtol=RTOL, atol=ATOL, equal_nan=True)
        for number, (one, other) in enumerate(zip(here[1], plain[1], strict=True)):
            assert (one is None) == (other is None), f"gradient {number} is missing on one of the devices"
            if one is not None:
                torch.testing.assert_close(one, other, rtol=RTOL, atol=ATOL, equal_nan=True)
    if not compared:
        pytest.skip("PyTorch's list has no input of it that the CPU takes in float32")


@promise("registration.a backward pass")
def test_a_module_moves_there_and_back(device: Device) -> None:
    """Module.to() takes parameters and buffers to the device and back, with their numbers."""
    module = torch.nn.BatchNorm1d(3)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    module.to(device.first)
    assert {value.device for value in module.state_dict().values()} == {device.first}
    module.to("cpu")
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
