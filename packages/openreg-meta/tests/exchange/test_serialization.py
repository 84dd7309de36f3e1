# SPDX-License-Identifier: BSD-3-Clause
"""Tensors, modules, optimizers and generators can be saved on one device and loaded on any other."""

import copy
import io
import pickle

import pytest
import torch

DEVICE = "openreg:1"


def reload(thing, legacy=False, **options):
    file = io.BytesIO()
    torch.save(thing, file, _use_new_zipfile_serialization=not legacy)
    file.seek(0)
    return torch.load(file, **options)


@pytest.fixture
def tensor():
    return torch.arange(6.0, device=DEVICE)


# How a file of openreg:1 may be mapped, and where its tensors are then.
LOCATIONS = {
    "as saved": (None, "openreg:1"),
    "cpu": ("cpu", "cpu"),
    "string": ("openreg:0", "openreg:0"),
    "string without index": ("openreg", "openreg:0"),
    "device": (torch.device("openreg", 0), "openreg:0"),
    "dictionary": ({"openreg:1": "openreg:0"}, "openreg:0"),
    "dictionary that does not name it": ({"openreg:0": "cpu"}, "openreg:1"),
    "function that keeps": (lambda storage, _location: storage, "cpu"),
    "function that moves": (lambda storage, location: storage.to(device="openreg:0"), "openreg:0"),
    "function that declines": (lambda _storage, _location: None, "openreg:1"),
}


@pytest.mark.covers("registration.torch.save and torch.load")
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", LOCATIONS)
def test_locations(tensor, name, legacy):
    location, device = LOCATIONS[name]
    loaded = reload(tensor, legacy, map_location=location)
    assert str(loaded.device) == device
    assert loaded.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.covers("registration.torch.save and torch.load")
def test_without_an_index_the_current_device_is_meant(tensor):
    with torch.openreg.device(1):
        assert str(reload(tensor.cpu(), map_location="openreg").device) == "openreg:1"


def test_a_file_of_the_cpu_goes_to_the_device():
    assert str(reload(torch.ones(2), map_location=DEVICE).device) == DEVICE


@pytest.mark.parametrize("location", ["openreg:7", torch.device("openreg", 2)])
def test_a_device_that_does_not_exist(tensor, location):
    with pytest.raises(RuntimeError, match=r"device_count\(\) is 2.*map_location"):
        reload(tensor, map_location=location)


def test_fewer_devices_than_when_it_was_saved(tensor, python, tmp_path):
    path = tmp_path / "tensor.pt"
    torch.save(tensor, path)
    done = python(
        f"""
import torch, torch_openreg
try:
    torch.load({str(path)!r})
except RuntimeError as error:
    print(error)
print(torch.load({str(path)!r}, map_location="openreg:0"))
""",
        OPENREG_DEVICE_COUNT="1",
    )
    assert "device 1 but torch.openreg.device_count() is 1" in done.stdout, done.stderr
    assert "tensor([0., 1., 2., 3., 4., 5.], device='openreg:0')" in done.stdout


def test_without_the_backend_a_file_loads_on_the_cpu(tensor, python, tmp_path):
    path = tmp_path / "tensor.pt"
    torch.openreg.set_resident(tensor)
    torch.save(tensor, path)
    done = python(
        f"import torch; print(torch.load({str(path)!r}, map_location='cpu'))", TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    )
    assert done.stdout == "tensor([0., 1., 2., 3., 4., 5.])\n", done.stderr


def test_a_mapped_file(tensor, tmp_path):
    path = tmp_path / "tensors.pt"
    torch.save({"all": tensor, "part": tensor[2:4]}, path)
    on_host = torch.load(path, mmap=True, map_location="cpu")
    moved = on_host["part"].to("openreg:0")
    on_device = torch.load(path, mmap=True)
    assert moved.tolist() == on_device["part"].tolist() == [2, 3]
    assert str(on_device["all"].device) == DEVICE


@pytest.mark.covers("registration.torch.save and torch.load")
def test_views_and_shared_storages_stay_so(tensor):
    loaded = reload({"whole": tensor, "view": tensor.reshape(2, 3).t()[1:]})
    assert loaded["view"].stride() == (1, 3)
    assert loaded["view"].tolist() == [[1, 4], [2, 5]]
    loaded["whole"].fill_(9)
    assert loaded["view"].tolist() == [[9, 9], [9, 9]]


@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16, torch.complex64, torch.float8_e4m3fn, torch.uint16])
def test_types(dtype):
    values = torch.tensor([0, 1, 1]).to(dtype)
    assert reload(values.to(DEVICE), map_location="cpu").equal(values)


def test_lazy_bits(tensor):
    conjugate = torch.view_as_complex(tensor.reshape(3, 2)).conj()
    assert reload(conjugate).is_conj()
    assert reload(conjugate).tolist() == conjugate.tolist()
    assert reload(conjugate.imag).is_neg()


def test_a_module_and_its_optimizer_go_on_as_if_nothing_happened(tmp_path):
    def make():
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).to(DEVICE)
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(3, 4, device=DEVICE).cumsum(0)).square().mean().backward()
        optimizer.step()

    model, optimizer = make()
    step(model, optimizer)
    path = tmp_path / "checkpoint.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    step(model, optimizer)
    for options in ({}, {"map_location": "cpu"}, {"map_location": DEVICE}, {"mmap": True}):
        again, its_optimizer = make()
        checkpoint = torch.load(path, weights_only=True, **options)
        again.load_state_dict(checkpoint["model"])
        its_optimizer.load_state_dict(checkpoint["optimizer"])
        step(again, its_optimizer)
        for expected, value in zip(model.state_dict().values(), again.state_dict().values(), strict=True):
            assert value.device == expected.device
            torch.testing.assert_close(value, expected)


def test_a_generator_goes_on_where_it_was():
    generator = torch.Generator(DEVICE).manual_seed(5)
    torch.rand(3, device=DEVICE, generator=generator)
    loaded = reload(generator, weights_only=False)
    assert loaded.device == torch.device(DEVICE)
    expected = torch.rand(3, device=DEVICE, generator=generator)
    assert torch.rand(3, device=DEVICE, generator=loaded).tolist() == expected.tolist()


@pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_pickles_and_copies(tensor, duplicate):
    parameter = torch.nn.Parameter(tensor)
    other = duplicate(parameter)
    assert type(other) is torch.nn.Parameter
    assert str(other.device) == DEVICE
    assert other.tolist() == tensor.tolist()


def test_deep_copies_keep_what_was_shared(tensor):
    whole, part = copy.deepcopy([tensor, tensor[2:]])
    whole.zero_()
    assert part.tolist() == [0, 0, 0, 0]
    assert tensor.tolist() == [0, 1, 2, 3, 4, 5]


# The hint that files keep.


@pytest.mark.covers("module.is_resident")
def test_the_hint_is_off_until_it_is_set(tensor):
    assert not torch.openreg.is_resident(tensor)
    torch.openreg.set_resident(tensor)
    assert torch.openreg.is_resident(tensor)
    torch.openreg.set_resident(tensor, False)
    assert not torch.openreg.is_resident(tensor)


@pytest.mark.covers("module.set_resident", "module.is_resident", "registration.torch::jit::TensorBackendMetaRegistry")
def test_files_keep_the_hint(tensor):
    torch.openreg.set_resident(tensor)
    for weights_only in (True, False):
        assert torch.openreg.is_resident(reload(tensor, weights_only=weights_only))
    assert torch.openreg.is_resident(reload(tensor, map_location="openreg:0"))
    assert torch.openreg.is_resident(pickle.loads(pickle.dumps(tensor)))
    assert torch.openreg.is_resident(reload(torch.nn.Parameter(tensor)))
    assert not torch.openreg.is_resident(reload(tensor, map_location="cpu"))
    assert not torch.openreg.is_resident(reload(tensor.clone()))


@pytest.mark.covers("registration.torch::jit::TensorBackendMetaRegistry")
def test_the_hint_belongs_to_the_tensor_not_to_its_memory(tensor):
    torch.openreg.set_resident(tensor)
    assert torch.openreg.is_resident(tensor.detach())
    assert torch.openreg.is_resident(tensor.data)
    assert not torch.openreg.is_resident(tensor[1:])
    assert not torch.openreg.is_resident(tensor.clone())
    detached = tensor.detach()
    torch.openreg.set_resident(detached, False)
    assert torch.openreg.is_resident(tensor)


@pytest.mark.covers("module.set_resident")
def test_the_host_has_no_such_hint():
    assert not torch.openreg.is_resident(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"on cpu.*move it with \.to\('openreg'\)"):
        torch.openreg.set_resident(torch.ones(2))


# Other named booleans, which PyTorch calls the tensor's metadata.


METADATA = {"version_number": True, "format_number": True, "something_else": False}


@pytest.mark.parametrize("legacy", [False, True])
def test_metadata_that_a_program_sets_is_in_files_of_the_device(tensor, legacy):
    assert torch._utils.get_tensor_metadata(tensor) == {}
    torch._utils.set_tensor_metadata(tensor, METADATA)
    assert torch._utils.get_tensor_metadata(tensor) == METADATA
    for weights_only in (True, False):
        loaded = reload(tensor, legacy, weights_only=weights_only)
        assert torch._utils.get_tensor_metadata(loaded) == METADATA
    on_host = reload(tensor, legacy, map_location="cpu")
    assert torch._utils.get_tensor_metadata(on_host) == {}
    assert torch._utils.get_tensor_metadata(on_host.to(DEVICE)) == {}


def test_the_hint_and_other_metadata_leave_each_other_alone(tensor):
    torch._utils.set_tensor_metadata(tensor, METADATA)
    torch.openreg.set_resident(tensor)
    assert torch.openreg.is_resident(reload(tensor))
    assert torch._utils.get_tensor_metadata(reload(tensor)).items() >= METADATA.items()
    torch.openreg.set_resident(tensor, False)
    assert torch._utils.get_tensor_metadata(tensor) == METADATA


def test_a_conjugate_that_was_loaded_is_not_one_for_ever():
    loaded = reload(torch.ones(2, dtype=torch.complex64, device=DEVICE).conj())
    assert loaded.is_conj()
    torch._C._set_conj(loaded, False)
    assert torch._utils.get_tensor_metadata(loaded) == {}
