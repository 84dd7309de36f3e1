# SPDX-License-Identifier: BSD-3-Clause
"""The methods of untyped and typed storages work on the device."""

import copy
import pickle

import pytest
import torch

DEVICE = "openreg:1"

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


@pytest.fixture
def storage():
    return torch.arange(6, dtype=torch.uint8, device=DEVICE).untyped_storage()


@pytest.fixture
def typed():
    return torch.arange(6.0, device=DEVICE).storage()


def test_size_and_place(storage):
    assert (storage.nbytes(), storage.size(), len(storage), storage.element_size()) == (6, 6, 6, 1)
    assert (str(storage.device), storage.get_device()) == (DEVICE, 1)
    assert storage.is_openreg
    assert not storage.is_cuda
    assert storage.resizable()


def test_reading(storage):
    assert storage[3] == 3
    assert storage.tolist() == list(storage) == [0, 1, 2, 3, 4, 5]
    assert storage[2:4].tolist() == [2, 3]
    assert repr(storage).endswith(f"[torch.storage.UntypedStorage(device={DEVICE}) of size 6]")
    with pytest.raises(IndexError):
        storage[6]


def test_writing(storage):
    storage[0] = 7
    storage[4:6] = 8
    assert storage.tolist() == [7, 1, 2, 3, 8, 8]
    assert storage.fill_(1).tolist() == [1] * 6


def test_a_slice_shares_the_memory(storage):
    part = storage[2:4]
    storage.fill_(9)
    assert part.tolist() == [9, 9]


@pytest.mark.parametrize("target", ["cpu", "openreg:0", "openreg:1"])
def test_moving(storage, target):
    moved = storage.to(device=target)
    assert str(moved.device) == target
    assert moved.tolist() == [0, 1, 2, 3, 4, 5]
    assert (moved is storage) == (target == DEVICE)


def test_the_methods_named_after_devices(storage):
    assert str(storage.cpu().device) == "cpu"
    assert str(storage.openreg(0).device) == "openreg:0"
    assert str(storage.cpu().openreg().device) == "openreg:0"
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match=r"CUDA|NVIDIA"):  # the latter from a build for CUDA without a GPU
            storage.cuda()


@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("source", ["cpu", "pinned", "openreg:0", "openreg:1"])
def test_copying_into(storage, source, non_blocking):
    other = torch.UntypedStorage([9, 8, 7, 6, 5, 4])
    other = other.pin_memory() if source == "pinned" else other.to(device=source)
    assert storage.copy_(other, non_blocking) is storage
    assert storage.tolist() == [9, 8, 7, 6, 5, 4]
    back = torch.UntypedStorage(6)
    assert back.copy_(storage).tolist() == [9, 8, 7, 6, 5, 4]


def test_pinning_is_for_the_host(storage):
    assert not storage.is_pinned()
    assert not torch.UntypedStorage(8).is_pinned()
    assert torch.UntypedStorage(8).pin_memory().is_pinned()
    with pytest.raises(TypeError, match="CPU"):
        storage.pin_memory()


def test_new_storages(storage):
    assert storage.new().device.type == "openreg"
    assert torch.UntypedStorage([1, 2], device=DEVICE).tolist() == [1, 2]
    assert torch.UntypedStorage(device=DEVICE).nbytes() == 0
    assert storage._new_shared(5, device=DEVICE).nbytes() == 5
    with pytest.raises(RuntimeError, match=r"\b9 .*\b2 devices"):
        torch.UntypedStorage(4, device="openreg:9")


@pytest.mark.parametrize("duplicate", [torch.UntypedStorage.clone, copy.copy, copy.deepcopy])
def test_duplicates(storage, duplicate):
    other = duplicate(storage)
    assert str(other.device) == DEVICE
    assert other.data_ptr() != storage.data_ptr()
    assert other.tolist() == storage.tolist()


def test_resizing_shows_in_its_tensors():
    tensor = torch.arange(4.0, device=DEVICE)
    storage = tensor.untyped_storage()
    storage.resize_(0)
    assert (storage.nbytes(), storage.data_ptr()) == (0, 0)
    storage.resize_(16)
    tensor.fill_(2)
    assert tensor.tolist() == [2, 2, 2, 2]


@pytest.mark.covers("registration.UntypedStorage.byteswap")
def test_swapping_bytes():
    storage = torch.tensor([1, 256], dtype=torch.int16, device=DEVICE).untyped_storage()
    assert storage.byteswap(torch.int16) is None
    assert storage.tolist() == [0, 1, 1, 0]
    host = torch.tensor([1], dtype=torch.int32).untyped_storage()
    host.byteswap(torch.int32)
    assert host.tolist() == [0, 0, 0, 1]


def test_bytes_are_converted_to_numbers(storage):
    assert storage.float().tolist() == [0, 1, 2, 3, 4, 5]
    assert str(storage.long().device) == DEVICE


@pytest.mark.parametrize("method", ["_share_fd_cpu_", "_share_filename_cpu_"])
def test_sharing_of_host_memory_is_refused(storage, method):
    with pytest.raises(RuntimeError, match="CPU"):
        getattr(storage, method)()


def test_a_typed_storage(typed):
    assert (typed.size(), typed.dtype, str(typed.device)) == (6, torch.float32, DEVICE)
    assert typed[2] == 2
    typed[2] = 7.5
    assert typed.tolist() == [0, 1, 7.5, 3, 4, 5]
    assert typed.fill_(2).tolist() == [2] * 6
    assert typed.cpu().tolist() == [2] * 6
    assert str(typed.openreg(0).device) == "openreg:0"
    assert str(typed.int().device) == DEVICE
    assert typed.is_openreg
    assert typed.is_shared()
    with pytest.raises(RuntimeError, match="slice"):
        typed[1:3]


@pytest.mark.parametrize("duplicate", [lambda x: x.clone(), copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_duplicates_of_a_typed_storage(typed, duplicate):
    other = duplicate(typed)
    assert (str(other.device), other.dtype, other.tolist()) == (DEVICE, torch.float32, typed.tolist())
    assert other.data_ptr() != typed.data_ptr()


def test_legacy_classes_move_to_the_device():
    moved = torch.FloatStorage([1, 2, 3]).openreg(1)
    assert (str(moved.device), moved.tolist()) == (DEVICE, [1, 2, 3])
    made = torch.TypedStorage([1.0, 2.0], dtype=torch.float16, device=DEVICE)
    assert (str(made.device), made.dtype, made.tolist()) == (DEVICE, torch.float16, [1, 2])
