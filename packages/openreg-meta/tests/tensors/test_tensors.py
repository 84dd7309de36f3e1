# SPDX-License-Identifier: BSD-3-Clause
"""Tensors on the device can be created, moved, copied, printed, pickled and viewed as in any program."""

import copy
import threading

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_survives_the_way_there_and_back(dtype):
    x = (torch.arange(6).reshape(2, 3) % 2).to(dtype)
    y = x.to("openreg")
    assert y.dtype is dtype
    assert torch.equal(y.cpu(), x)
    assert torch.equal(y.to("openreg:1").cpu(), x)
    assert torch.equal(y.t().contiguous().cpu(), x.t())


@pytest.mark.parametrize("source", ["cpu", "openreg:0", "openreg:1"])
@pytest.mark.parametrize("target", ["cpu", "openreg:0", "openreg:1"])
def test_copies_convert_types_and_strides(source, target):
    values = torch.arange(24.0).reshape(4, 6)
    x = values.to(source)[::2, 1::2]
    y = torch.zeros(3, 2, dtype=torch.int32, device=target).t()
    y.copy_(x)
    assert torch.equal(y.cpu(), values[::2, 1::2].int())


def test_pinned_copies_are_asynchronous_and_ordered(gate):
    source = torch.arange(1000.0).pin_memory()
    gate.close()
    y = source.to("openreg", non_blocking=True) * 2
    back = torch.empty(1000).pin_memory()
    back.copy_(y, non_blocking=True)
    assert not torch.openreg.current_stream().query()
    gate.open()
    torch.openreg.synchronize()
    assert torch.equal(back, torch.arange(1000.0) * 2)


def test_a_pageable_source_may_change_after_the_copy(gate):
    source = torch.ones(1000)
    gate.close()
    y = source.to("openreg", non_blocking=True)
    source.fill_(5)
    gate.open()
    assert y.sum().item() == 1000


def test_launches_return_before_the_kernel_runs(gate):
    x = torch.ones(4, device="openreg")
    gate.close()
    y = x + 1
    assert not torch.openreg.current_stream().query()
    gate.open()
    assert y.cpu().tolist() == [2, 2, 2, 2]
    assert torch.openreg.current_stream().query()


def test_streams_are_ordered_by_events(gate):
    stream = torch.openreg.Stream()
    x = torch.zeros(1000, device="openreg")
    gate.close()
    x.add_(1)
    stream.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(stream):
        y = x * 3
    torch.openreg.current_stream().wait_stream(stream)
    total = y.sum()
    gate.open()
    assert total.item() == 3000


@pytest.mark.covers("allocator.is_simple_data_ptr", "allocator.copy_data")
def test_a_lazy_clone_is_copied_on_the_first_write():
    x = torch.arange(4.0, device="openreg:1")
    clone = torch._lazy_clone(x)
    clone.add_(1)
    assert (x.tolist(), clone.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 4])
    assert x.data_ptr() != clone.data_ptr()


@pytest.mark.covers("module.sparse")
def test_legacy_type_names_need_no_classes():
    x = torch.zeros(2).type("torch.openreg.DoubleTensor")
    assert (x.device.type, x.dtype) == ("openreg", torch.float64)
    assert x.type() == "torch.openreg.DoubleTensor"
    with torch.device("openreg:1"):
        assert torch.zeros(2).device.index == 1


def test_deep_copies_are_independent():
    module = torch.nn.Linear(2, 2).to("openreg")
    other = copy.deepcopy(module)
    with torch.no_grad():
        other.weight.zero_()
    assert other.weight.is_openreg
    assert module.weight.abs().sum().item() > 0


def test_a_state_dict_moves_between_devices():
    source, target = (
        torch.nn.BatchNorm1d(3).to("openreg:0"),
        torch.nn.BatchNorm1d(3).to("openreg:1"),
    )
    source(torch.arange(12.0, device="openreg:0").reshape(4, 3))
    target.load_state_dict(source.state_dict())
    assert target.running_mean.device.index == 1
    assert torch.equal(target.running_mean.cpu(), source.running_mean.cpu())
    assert target.num_batches_tracked.item() == 1


@pytest.mark.covers("accelerator_hooks.isPinnedPtr")
def test_the_data_loader_pins_its_batches():
    data = TensorDataset(torch.arange(10.0), torch.arange(10))
    batches = list(DataLoader(data, batch_size=5, pin_memory=True))
    assert all(item.is_pinned() for batch in batches for item in batch)
    moved = [batch[0].to("openreg", non_blocking=True) for batch in batches]
    assert torch.cat(moved).cpu().tolist() == list(range(10))


def test_the_data_loader_works_with_worker_processes():
    torch.ones(1, device="openreg")
    data = TensorDataset(torch.arange(6.0))
    loaded = [x.to("openreg") for (x,) in DataLoader(data, batch_size=3, num_workers=1)]
    assert torch.cat(loaded).sum().item() == 15


def test_tensors_print_their_values_and_device():
    assert repr(torch.tensor([1.5, 2], device="openreg:1")) == ("tensor([1.5000, 2.0000], device='openreg:1')")
    assert repr(torch.tensor(3, device="openreg")) == "tensor(3, device='openreg:0')"
    assert "requires_grad=True" in repr(torch.ones(1, device="openreg", requires_grad=True))


def test_numpy_arrays_go_both_ways():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = torch.from_numpy(array).to("openreg")
    assert np.array_equal((x * 2).cpu().numpy(), array * 2)
    assert torch.tensor(array, device="openreg").shape == (2, 3)


def test_views_share_memory_with_their_base():
    x = torch.zeros(3, 4, device="openreg")
    x[1].fill_(1)
    x[:, 2].add_(5)
    x.view(-1)[-1] = 9
    expected = torch.zeros(3, 4)
    expected[1] = 1
    expected[:, 2] += 5
    expected[2, 3] = 9
    assert torch.equal(x.cpu(), expected)
    assert x.t().data_ptr() == x.data_ptr()


def test_each_thread_has_its_own_current_device():
    seen = {}

    def work():
        seen["fresh"] = torch.openreg.current_device()
        torch.openreg.set_device(1)
        seen["sum"] = torch.ones(3, device="openreg").sum().item()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == {"fresh": 0, "sum": 3}
    assert torch.openreg.current_device() == 0


def test_gradients_flow_between_devices():
    x = torch.ones(3, device="openreg:0", requires_grad=True)
    y = torch.full((3,), 2.0, requires_grad=True)
    loss = ((x * 2).to("openreg:1") * y.to("openreg:1")).cpu().sum()
    loss.backward()
    assert x.grad.device == torch.device("openreg:0")
    assert x.grad.cpu().tolist() == [4, 4, 4]
    assert y.grad.tolist() == [2, 2, 2]
