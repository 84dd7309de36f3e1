# SPDX-License-Identifier: BSD-3-Clause
"""Files: torch.load() of tensors that torch.save() wrote, on the device and on the CPU.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` are then skipped.
"""

import copy
import io
from typing import Any

import pytest
import torch

from openreg_testing.conformance.harness import DeviceUnderTest, covers

SAVED = "registration.torch.save and torch.load"


def through_a_file(value: Any, **options: Any) -> Any:
    """Saves a value with torch.save() and returns the result of torch.load()."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


@covers(SAVED)
@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64],
    ids=lambda dtype: str(dtype).removeprefix("torch."),
)
def test_a_tensor_comes_back_to_its_device(device: DeviceUnderTest, dtype: torch.dtype) -> None:
    """torch.load returns a tensor on the device from which it was saved."""
    x = torch.tensor([0, 1, 2]).to(dtype).to(device.first)
    y = through_a_file(x)
    assert y.device == x.device
    assert y.dtype == dtype
    assert torch.equal(y.cpu(), x.cpu())


@covers(SAVED)
def test_a_file_can_be_read_without_the_device(device: DeviceUnderTest) -> None:
    """torch.load(map_location="cpu") returns tensors on the CPU."""
    y = through_a_file({"x": device.tensor(1, 2)}, map_location="cpu")["x"]
    assert y.device.type == "cpu"
    assert y.tolist() == [1, 2]


@covers(SAVED, "module._utils._get_device_index")
def test_a_file_of_the_cpu_can_be_read_to_the_device(device: DeviceUnderTest) -> None:
    """torch.load(map_location=device) loads tensors of the CPU to a device, given as a string or torch.device."""
    for where in (device.name, str(device.first), device.first):
        y = through_a_file(torch.ones(2), map_location=where)
        assert y.device == device.first
        assert y.tolist() == [1, 1]


@covers(SAVED)
def test_storages_stay_shared(device: DeviceUnderTest) -> None:
    """Two views of one storage still share a storage after they were saved and loaded."""
    x = device.tensor(1, 2, 3, 4)
    y, z = through_a_file([x[:2], x[1:]])
    y.fill_(7)
    assert z.tolist() == [7, 3, 4]


@covers(SAVED)
def test_a_state_dict_comes_back(device: DeviceUnderTest) -> None:
    """A module's state_dict() can be loaded into another module on the device, and on the CPU."""
    module = torch.nn.Linear(3, 2).to(device.first)
    other = torch.nn.Linear(3, 2).to(device.first)
    other.load_state_dict(through_a_file(module.state_dict()))
    assert torch.equal(other.weight.cpu(), module.weight.cpu())
    here = torch.nn.Linear(3, 2)
    here.load_state_dict(module.state_dict())
    assert torch.equal(here.weight, module.weight.cpu())


@covers(SAVED)
def test_a_parameter_stays_a_parameter(device: DeviceUnderTest) -> None:
    """torch.load returns a parameter as a parameter, with requires_grad."""
    y = through_a_file(torch.nn.Parameter(device.tensor(1, 2)))
    assert isinstance(y, torch.nn.Parameter)
    assert y.requires_grad
    assert y.device == device.first


@covers(SAVED)
def test_a_tensor_of_another_device_comes_back_there(accelerator: DeviceUnderTest) -> None:
    """A tensor of the second device is loaded to that device, unless map_location names another one."""
    x = accelerator.tensor(1, 2, device=accelerator.second)
    assert through_a_file(x).device == accelerator.second
    moved = through_a_file(x, map_location={str(accelerator.second): str(accelerator.first)})
    assert moved.device == accelerator.first


@covers(SAVED)
def test_a_deep_copy_stays_on_the_device(device: DeviceUnderTest) -> None:
    """copy.deepcopy returns a tensor on the same device, in new memory."""
    x = device.tensor(1, 2)
    y = copy.deepcopy(x)
    y.fill_(5)
    assert y.device == device.first
    assert x.tolist() == [1, 2]


@covers(SAVED)
def test_an_optimizer_comes_back(device: DeviceUnderTest) -> None:
    """The state of an optimizer can be saved and loaded into another optimizer."""
    x = torch.nn.Parameter(device.tensor(1, 2))
    optimizer = torch.optim.Adam([x], lr=0.1)
    x.grad = torch.ones_like(x)
    optimizer.step()
    state = through_a_file(optimizer.state_dict())
    other = torch.optim.Adam([torch.nn.Parameter(x.detach().clone())], lr=0.1)
    other.load_state_dict(state)
    (loaded,) = other.state.values()
    assert loaded["exp_avg"].device == device.first
    assert torch.equal(loaded["exp_avg"].cpu(), optimizer.state[x]["exp_avg"].cpu())
