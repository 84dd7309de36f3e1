# SPDX-License-Identifier: BSD-3-Clause
"""The device and its module: the number of devices, the current one, and the functions of the module.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` are then skipped.
"""

import pytest
import torch

from openreg_testing.conformance.harness import DeviceUnderTest, covers


@covers("module.the module itself")
def test_the_module_is_registered(accelerator: DeviceUnderTest) -> None:
    """torch.get_device_module() returns the module torch.<device>."""
    assert torch.get_device_module(accelerator.name) is accelerator.module
    assert torch.get_device_module(torch.device(accelerator.name)) is accelerator.module


@covers("registration.torch.utils.rename_privateuse1_backend")
def test_the_device_has_its_name(accelerator: DeviceUnderTest) -> None:
    """A device created by its name has this type, with and without an index, also in the repr of a tensor."""
    assert torch.device(accelerator.name).type == accelerator.name
    assert torch.device(f"{accelerator.name}:0") == accelerator.first
    assert f"device='{accelerator.name}:0'" in repr(accelerator.tensor())


@covers("accelerator_hooks.isAvailable", "accelerator_hooks.isBuilt")
def test_the_accelerator_is_this_device(accelerator: DeviceUnderTest) -> None:
    """torch.accelerator.current_accelerator() returns the device, also with check_available=True."""
    assert torch.accelerator.is_available()
    found = torch.accelerator.current_accelerator(check_available=True)
    assert found is not None
    assert found.type == accelerator.name


@covers("module.is_available")
def test_is_available_says_true(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.is_available() returns the bool True if there is a device."""
    assert accelerator.module.is_available() is True


@covers("module.device_count")
def test_devices_are_counted(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.device_count() returns 1 or more, and equals torch.accelerator.device_count()."""
    count = accelerator.module.device_count()
    assert isinstance(count, int), f"device_count() returns a {type(count).__name__}, not an int"
    assert count >= 1
    assert torch.accelerator.device_count() == count


@covers("accelerator_hooks.deviceCount")
def test_the_hooks_count_the_same(accelerator: DeviceUnderTest) -> None:
    """The hooks, which C++ code calls, count as many devices as the module, which Python code calls."""
    hooks, module = torch._C._accelerator_hooks_device_count(), accelerator.count
    assert hooks == module, f"the hooks count {hooks} devices, the module {module}"


@covers("module.current_device")
def test_the_current_device_is_one_of_them(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.current_device() equals torch.accelerator.current_device_index()."""
    current = accelerator.module.current_device()
    assert 0 <= current < accelerator.count
    assert current == torch.accelerator.current_device_index()


@covers("module.set_device")
@pytest.mark.parametrize("form", ["index", "string", "device"])
def test_set_device_takes_every_form(accelerator: DeviceUnderTest, form: str) -> None:
    """torch.<device>.set_device() accepts an index, a string and a torch.device; new tensors are on that device."""
    last = accelerator.count - 1
    device = torch.device(accelerator.name, last)
    accelerator.module.set_device({"index": last, "string": str(device), "device": device}[form])
    assert accelerator.module.current_device() == last
    assert torch.accelerator.current_device_index() == last
    assert torch.empty(1, device=accelerator.name).device == device


@covers("module.is_initialized")
def test_a_used_device_is_initialized(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.is_initialized() is true after the first tensor was created."""
    accelerator.tensor()
    assert accelerator.module.is_initialized() is True


@covers("module._initialized")
def test_a_used_device_is_initialized_as_a_variable(accelerator: DeviceUnderTest) -> None:
    """The variable torch.<device>._initialized is true after the first tensor was created."""
    accelerator.tensor()
    assert accelerator.module._initialized is True


@covers("module._is_in_bad_fork")
def test_this_process_is_no_bad_fork(accelerator: DeviceUnderTest) -> None:
    """torch.<device>._is_in_bad_fork() is false in the process that initialized the device."""
    accelerator.tensor()
    assert accelerator.module._is_in_bad_fork() is False


@covers("module.device")
def test_the_context_changes_the_device_and_back(accelerator: DeviceUnderTest) -> None:
    """`with torch.<device>.device(index)` makes a device current and restores the old one; None changes nothing."""
    last = accelerator.count - 1
    before = accelerator.module.current_device()
    with accelerator.module.device(last):
        assert accelerator.module.current_device() == last
    assert accelerator.module.current_device() == before
    with accelerator.module.device(None):
        assert accelerator.module.current_device() == before
    with accelerator.module.device(torch.device(accelerator.name, last)):
        assert accelerator.module.current_device() == last
    assert accelerator.module.current_device() == before


@covers("module.synchronize")
def test_the_module_waits(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.synchronize() accepts no argument, an index or a torch.device."""
    x = accelerator.tensor()
    accelerator.module.synchronize()
    accelerator.module.synchronize(0)
    accelerator.module.synchronize(accelerator.first)
    assert x.tolist() == [1, 2, 3]


@covers("module.get_device_properties")
def test_properties_have_a_name_and_a_size(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.get_device_properties() has a name and the total memory of a device."""
    properties = accelerator.module.get_device_properties(0)
    assert isinstance(properties.name, str)
    assert properties.total_memory > 0


@covers("guard.getDeviceCapability")
def test_the_capability_names_dtypes(accelerator: DeviceUnderTest) -> None:
    """torch.accelerator.get_device_capability() lists the dtypes that the device supports."""
    capability = torch.accelerator.get_device_capability(accelerator.first)
    assert torch.float32 in capability["supported_dtypes"]


@covers("registration.the minimal set of operators")
def test_a_device_that_is_not_there_is_refused(accelerator: DeviceUnderTest) -> None:
    """Creating a tensor on a device beyond the last one raises RuntimeError, and the devices stay usable."""
    with pytest.raises(RuntimeError):
        torch.empty(1, device=torch.device(accelerator.name, accelerator.count))
    assert accelerator.tensor(4).item() == 4


@covers("registration.the minimal set of operators")
@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8, torch.bool],
    ids=lambda dtype: str(dtype).removeprefix("torch."),
)
def test_numbers_go_there_and_back(device: DeviceUnderTest, dtype: torch.dtype) -> None:
    """A tensor of any common dtype keeps its values when it is copied to the device and back."""
    original = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    there = original.to(device.first)
    assert there.device == device.first
    assert there.dtype == dtype
    assert torch.equal(there.cpu(), original)


@covers("registration.the minimal set of operators")
@pytest.mark.parametrize("form", ["transposed", "sliced", "expanded", "empty", "of no dimension"])
def test_views_go_there_and_back(device: DeviceUnderTest, form: str) -> None:
    """Copies keep the values of tensors with any strides, and of those without elements or dimensions."""
    x = torch.arange(24.0).view(2, 3, 4)
    original = {
        "transposed": x.transpose(0, 2),
        "sliced": x[:, 1:, ::2],
        "expanded": x[:1].expand(5, 3, 4),
        "empty": x[:0],
        "of no dimension": x[1, 2, 3],
    }[form]
    there = original.to(device.first)
    assert there.shape == original.shape
    assert torch.equal(there.cpu(), original)


@covers("registration.the minimal set of operators")
def test_views_share_memory(device: DeviceUnderTest) -> None:
    """Writes to a view change the tensor: as_strided, view and slices do not copy."""
    x = torch.zeros(2, 3).to(device.first)
    x.view(3, 2)[0, 0] = 1
    x[1:, 2:].fill_(5)
    x.t()[1, 0] = 7
    assert x.tolist() == [[1, 7, 0], [0, 0, 5]]


@covers("registration.the minimal set of operators")
def test_a_number_can_be_read(device: DeviceUnderTest) -> None:
    """item() and bool() return the number of a tensor on the device, after its kernel has run."""
    assert device.tensor(2.5).item() == 2.5
    assert bool(device.tensor(1))
    assert device.tensor(1, 2)[1].item() == 2


@covers("registration.the minimal set of operators")
def test_mixed_devices_are_refused(accelerator: DeviceUnderTest) -> None:
    """An operator whose operands are on the device and on the CPU raises RuntimeError."""
    with pytest.raises(RuntimeError):
        torch.ones(3) + accelerator.tensor()


@covers("registration.torch.utils.generate_methods_for_privateuse1_backend")
def test_tensors_have_methods_of_its_name(accelerator: DeviceUnderTest) -> None:
    """generate_methods_for_privateuse1_backend() adds methods of the device's name to tensors, modules and storages."""
    name = accelerator.name
    if not hasattr(torch.Tensor, f"is_{name}"):
        pytest.skip("not claimed: generate_methods_for_privateuse1_backend() was not called")
    x = torch.ones(2)
    moved = getattr(x, name)()
    assert moved.device == accelerator.first
    assert getattr(moved, f"is_{name}")
    assert not getattr(x, f"is_{name}")
    module = getattr(torch.nn.Linear(2, 2), name)()
    assert module.weight.device == accelerator.first


@covers("registration.aten::_has_compatible_shallow_copy_type")
def test_parameters_stay_the_same_objects(accelerator: DeviceUnderTest) -> None:
    """Module.to(device) changes parameters in place: existing optimizers keep them, and tied weights stay tied."""
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    module[1].weight = module[0].weight
    before = list(module.parameters())
    module.to(accelerator.first)
    after = list(module.parameters())
    assert all(one is other for one, other in zip(before, after, strict=True)), "Module.to() created new parameters"
    assert module[1].weight is module[0].weight
