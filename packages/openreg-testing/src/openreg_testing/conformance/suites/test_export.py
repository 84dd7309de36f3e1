# SPDX-License-Identifier: BSD-3-Clause
"""Traced programs: FakeTensor, torch.export and the compiler's front ends support the device.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` are then skipped.
"""

import copy
import io
import warnings
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.testing._internal.common_modules import ModuleInfo, module_db

from openreg_testing.conformance import modules
from openreg_testing.conformance.error_text import first_line
from openreg_testing.conformance.harness import DeviceUnderTest, covers

DECOMPOSITIONS = "registration.decompositions of composite operators that the device overrides"
TRACED = "registration.backends eager and aot_eager, torch.export, FakeTensor"


class Net(torch.nn.Module):
    """A small module with a parameter, a buffer and a tensor that it creates on the device of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.scale = torch.nn.Buffer(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a scaled product plus a new tensor on the device of the input."""
        return torch.relu(self.layer(x)) * self.scale + torch.arange(2, device=x.device)


@covers("module.current_device", "module.is_initialized")
def test_a_fake_tensor_has_the_device(accelerator: DeviceUnderTest) -> None:
    """A FakeTensor whose device has no index is on the current device, and so are the results of its operators."""
    accelerator.tensor()  # PyTorch queries the current device only of a device that is initialized
    with FakeTensorMode():
        x = torch.empty(2, 3, device=accelerator.name)
        y = (x @ x.t()).relu()
    assert x.device == accelerator.first
    assert y.device == accelerator.first
    assert y.shape == (2, 2)


@covers(TRACED)
def test_a_program_is_exported(device: DeviceUnderTest) -> None:
    """torch.export.export() of a module on the device returns a program with the results of the module."""
    torch.manual_seed(1)
    net, x = Net().to(device.first), torch.randn(3, 4).to(device.first)
    program = torch.export.export(net, (x,))
    found = program.module()(x)
    assert found.device == device.first
    torch.testing.assert_close(found.cpu(), net(x).cpu())


@covers(TRACED)
def test_an_exported_program_comes_back_from_a_file(device: DeviceUnderTest) -> None:
    """torch.export.save() and load() keep a program with its parameters on the device."""
    torch.manual_seed(1)
    net, x = Net().to(device.first), torch.randn(3, 4).to(device.first)
    file = io.BytesIO()
    torch.export.save(torch.export.export(net, (x,)), file)
    file.seek(0)
    found = torch.export.load(file).module()(x)
    torch.testing.assert_close(found.cpu(), net(x).cpu())


@covers(TRACED)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_traced_function_computes_the_same(device: DeviceUnderTest, backend: str) -> None:
    """torch.compile with a backend that generates no code keeps the results and gradients of a function."""
    torch.manual_seed(1)
    net, x = Net().to(device.first), torch.randn(3, 4).to(device.first).requires_grad_()
    compiled = torch.compile(net, backend=backend, fullgraph=True)
    expected, found = net(x), compiled(x)
    torch.testing.assert_close(found.detach().cpu(), expected.detach().cpu())
    (one,) = torch.autograd.grad(found.sum(), [x])
    (other,) = torch.autograd.grad(expected.sum(), [x])
    torch.testing.assert_close(one.cpu(), other.cpu())


@covers(TRACED)
def test_functional_graphs_are_made(device: DeviceUnderTest) -> None:
    """make_fx records the operators of a function on the device."""
    from torch.fx.experimental.proxy_tensor import make_fx

    x = device.tensor(1, 2, 3)
    graph = make_fx(lambda value: (value * 2).add_(1))(x)
    assert graph(x).tolist() == [3, 5, 7]


@covers(DECOMPOSITIONS)
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_a_program_is_taken_apart_as_on_the_cpu(device: DeviceUnderTest, info: ModuleInfo) -> None:
    """run_decompositions() leaves only operators of core ATen, and those that it leaves for the CPU."""
    for module, (args, kwargs) in modules.cases(info, 1):
        here, there = ((modules.moved((args, kwargs), place), place) for place in (torch.device("cpu"), device.first))
        try:
            expected = _operators(_decompose(module, *here[0]))
        except (RuntimeError, ValueError, torch._dynamo.exc.TorchDynamoException) as error:
            pytest.skip(f"{info.name} cannot be exported for the CPU: {first_line(error)}")
        program = _decompose(copy.deepcopy(module).to(there[1]), *there[0])
        core = {operator for operator in _operators(program) if torch.Tag.core in getattr(operator, "tags", ())}
        assert _operators(program) - core - expected == set()


def _decompose(module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(module, args, kwargs).run_decompositions()


def _operators(program: ExportedProgram) -> set[Any]:
    return {node.target for node in program.graph.nodes if node.op == "call_function"}
