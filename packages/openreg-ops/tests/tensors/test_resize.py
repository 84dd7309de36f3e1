# SPDX-License-Identifier: BSD-3-Clause
"""resize_(), resize_as_() and set_() change size and storage as on the CPU."""

import pytest
import torch
from parity import DEVICE, is_busy

pytestmark = pytest.mark.no_fallback


@pytest.mark.covers("registration.the minimal set of operators")
def test_a_larger_tensor_keeps_its_values():
    x = torch.arange(6.0, device=DEVICE).view(2, 3)
    assert x.resize_(4, 5) is x
    assert (x.shape, x.stride()) == ((4, 5), (5, 1))
    assert x.untyped_storage().nbytes() == 80
    assert x.flatten()[:6].cpu().tolist() == [0, 1, 2, 3, 4, 5]
    assert x.fill_(1).sum().item() == 20


def test_a_smaller_tensor_keeps_its_storage():
    x = torch.arange(6.0, device=DEVICE)
    address = x.data_ptr()
    x.resize_(2, 2)
    assert (x.data_ptr(), x.untyped_storage().nbytes()) == (address, 24)
    assert x.cpu().tolist() == [[0, 1], [2, 3]]
    x.resize_(0)
    assert x.shape == (0,)
    x.resize_(6)
    assert x.cpu().tolist() == [0, 1, 2, 3, 4, 5]


def test_resizing_is_ordered_with_other_work(gate):
    x = torch.zeros(4, device=DEVICE)
    gate.close()
    x.fill_(7)
    x.resize_(1000)
    assert is_busy()
    gate.open()
    assert x[:4].cpu().tolist() == [7] * 4


def test_memory_formats():
    for shape in ((2, 3, 4, 5), (1, 2, 3, 4)):
        x = torch.empty(2, 3, 4, 5, device=DEVICE).resize_(shape, memory_format=torch.channels_last)
        assert x.stride() == torch.empty(shape, memory_format=torch.channels_last).stride()
    expanded = torch.zeros(1, device=DEVICE).expand(2, 3)
    expanded.resize_(2, 3, memory_format=torch.contiguous_format)
    assert expanded.fill_(1).sum().item() == 6
    with pytest.raises(RuntimeError, match="memory format"):
        torch.empty(2, 3, 4, 5, device=DEVICE).resize_(2, 3, 4, 5, memory_format=torch.preserve_format)


@pytest.mark.parametrize(("size", "text"), [((2**44,), "out of memory"), ((-1, 3), "negative dimension")])
def test_what_cannot_be_changes_nothing(size, text):
    x = torch.arange(6.0, device=DEVICE)
    with pytest.raises(RuntimeError, match=text):
        x.resize_(size)
    assert x.shape == (6,)
    assert x.cpu().tolist() == [0, 1, 2, 3, 4, 5]


def test_resize_as():
    x = torch.arange(6.0, device=DEVICE)
    like = torch.empty(1, 2, 2, 2, device=DEVICE).contiguous(memory_format=torch.channels_last)
    x.resize_as_(like, memory_format=torch.preserve_format)
    assert (x.shape, x.stride()) == (like.shape, like.stride())


@pytest.mark.covers("registration.the minimal set of operators")
def test_set_to_another_tensor():
    x, y = torch.empty(0, device=DEVICE), torch.arange(6.0, device=DEVICE).view(2, 3).t()
    assert x.set_(y) is x
    assert (x.shape, x.stride(), x.data_ptr()) == (y.shape, y.stride(), y.data_ptr())
    assert x.set_(x) is x
    x[0, 0] = 9
    assert y[0, 0].item() == 9


def test_set_to_a_storage():
    y = torch.arange(6.0, device=DEVICE)
    x = torch.empty(0, device=DEVICE).set_(y.untyped_storage())
    assert x.cpu().tolist() == y.cpu().tolist()
    x = torch.empty(0, device=DEVICE).set_(y.untyped_storage(), 1, (2, 2), (1, 2))
    assert x.cpu().tolist() == [[1, 3], [2, 4]]


def test_set_to_nothing():
    x = torch.arange(6.0, device="openreg:1")
    assert x.set_() is x
    assert (x.shape, x.device.index, x.untyped_storage().nbytes()) == ((0,), 1, 0)


def test_set_beyond_the_storage_grows_it():
    y = torch.arange(4.0, device=DEVICE)
    x = torch.empty(0, device=DEVICE).set_(y.untyped_storage(), 2, (6,), (1,))
    assert y.untyped_storage().nbytes() == 32
    assert x[:2].cpu().tolist() == [2, 3]


def test_set_to_the_memory_of_another_device():
    with pytest.raises(RuntimeError, match="device"):
        torch.empty(0, device="openreg:0").set_(torch.ones(3, device="openreg:1"))
    with pytest.raises(RuntimeError, match="device"):
        torch.empty(0, device="openreg:0").set_(torch.ones(3).untyped_storage())
