# SPDX-License-Identifier: BSD-3-Clause
"""Factories whose values depend on their arguments alone give the CPU's tensors."""

import pytest
import torch
from parity import DEVICE, assert_same, is_busy

pytestmark = pytest.mark.no_fallback

FACTORIES = {
    "linspace": lambda device: torch.linspace(-1, 2, 7, device=device),
    "linspace of integers": lambda device: torch.linspace(0, 10, 5, dtype=torch.int64, device=device),
    "linspace, complex": lambda device: torch.linspace(0, 1 + 2j, 3, device=device),
    "linspace, one step": lambda device: torch.linspace(3, 5, 1, device=device),
    "linspace, no step": lambda device: torch.linspace(3, 5, 0, device=device),
    "logspace": lambda device: torch.logspace(0, 3, 4, base=2, device=device),
    "eye": lambda device: torch.eye(3, device=device),
    "eye, wide": lambda device: torch.eye(2, 4, dtype=torch.int32, device=device),
    "eye, nothing": lambda device: torch.eye(0, device=device),
    "tril_indices": lambda device: torch.tril_indices(3, 4, -1, device=device),
    "triu_indices": lambda device: torch.triu_indices(3, 4, 1, dtype=torch.int32, device=device),
    "tril_indices, nothing": lambda device: torch.tril_indices(2, 2, -5, device=device),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name):
    assert_same(FACTORIES[name](DEVICE), FACTORIES[name]("cpu"))


@pytest.mark.parametrize("name", ["linspace", "logspace", "eye", "tril_indices"])
def test_factories_on_another_device(name):
    assert FACTORIES[name]("openreg:1").device == torch.device("openreg:1")
    assert torch.openreg.current_device() == 0


def test_out_forms():
    for make in (
        lambda out: torch.linspace(0, 1, 4, out=out),
        lambda out: torch.logspace(0, 1, 4, out=out),
        lambda out: torch.eye(2, out=out),
        lambda out: torch.eye(3, 2, out=out),
    ):
        out = torch.empty(0, device=DEVICE)
        assert make(out) is out
        assert_same(out, make(torch.empty(0)))
    strided = torch.zeros(4, 4, device=DEVICE)[::2, ::2]
    assert torch.eye(2, out=strided).stride() == (8, 2)
    assert strided.cpu().tolist() == [[1, 0], [0, 1]]


def test_bounds_on_the_device_are_read_by_the_kernel(gate):
    start, end, out = torch.tensor(1.0, device=DEVICE), torch.tensor(4.0, device=DEVICE), torch.empty(4, device=DEVICE)
    gate.close()
    torch.linspace(start, end, 4, out=out)
    assert is_busy()
    gate.open()
    assert out.cpu().tolist() == [1, 2, 3, 4]
    torch.linspace(torch.tensor(0.0), end, 5, out=out.resize_(5))
    assert out.cpu().tolist() == [0, 1, 2, 3, 4]
    assert torch.linspace(start, 4, 4, out=out.resize_(4)).cpu().tolist() == [1, 2, 3, 4]
    assert_same(torch.logspace(start, end, 4, out=out), torch.logspace(1, 4, 4))


@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.linspace(0, 1, -1, device=device),
        lambda device: torch.linspace(0, 1, 3, dtype=torch.bool, device=device),
        lambda device: torch.linspace(0, 1000, 3, dtype=torch.uint8, device=device),
        lambda device: torch.eye(-1, device=device),
        lambda device: torch.tril_indices(-1, 2, device=device),
        lambda device: torch.triu_indices(2, 2, dtype=torch.float32, device=device),
    ],
)
def test_mistakes_are_those_of_the_cpu(make):
    with pytest.raises(RuntimeError) as theirs:
        make("cpu")
    with pytest.raises(type(theirs.value)) as ours:
        make(DEVICE)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


def test_zeros_without_memory():
    zeros = torch._efficientzerotensor((2, 3), device=DEVICE)
    assert torch._is_zerotensor(zeros)
    assert (zeros.device.type, zeros.data_ptr()) == (DEVICE, 0)
    assert (zeros + 1).sum().item() == 6
    assert not torch._is_zerotensor(zeros * 2 + 1)
    with pytest.raises(RuntimeError, match="openreg"):
        torch._efficientzerotensor((2,), device="openreg:99")
    with pytest.raises(RuntimeError, match="pinned"):
        torch._efficientzerotensor((2,), device=DEVICE, pin_memory=True)
