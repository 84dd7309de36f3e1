# SPDX-License-Identifier: BSD-3-Clause
"""Every operator that PyTorch has for nested tensors of layout torch.jagged gives the CPU's results."""

import contextlib
import copy
import pickle

import jagged_samples
import pytest
import torch
from jagged_samples import REFUSED, RESULTS, jagged
from parity import DEVICE
from torch.utils import _pytree as pytree

from openreg_testing.conformance.jagged import assert_same

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage"),
]

HERE = torch.device(DEVICE, 0)


@pytest.mark.parametrize("name", RESULTS)
def test_an_operator_gives_what_the_cpu_gives(name):
    assert_same(HERE, RESULTS[name](DEVICE), RESULTS[name]("cpu"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_cpu_refuses_is_refused_on_the_calling_line(name):
    errors = []
    for device in ("cpu", DEVICE):
        with pytest.raises((RuntimeError, ValueError, NotImplementedError), match=r".*") as caught:
            REFUSED[name](device)
        errors.append(caught.type)
    assert errors[1] is errors[0]


def test_every_operator_of_pytorchs_table_is_called_by_a_sample(monkeypatch):
    from torch.nested._internal.nested_tensor import NestedTensor
    from torch.nested._internal.ops import JAGGED_OPS_TABLE

    called = set()
    dispatch = NestedTensor.__torch_dispatch__

    def noting(func, types, args=(), kwargs=None):
        called.add(func)
        return dispatch(func, types, args, kwargs)

    monkeypatch.setattr(NestedTensor, "__torch_dispatch__", staticmethod(noting))
    for call in [*RESULTS.values(), *jagged_samples.UNCOMPARED.values()]:
        call(DEVICE)
    for call in REFUSED.values():
        with contextlib.suppress(RuntimeError, ValueError, NotImplementedError):
            call(DEVICE)
    assert sorted(map(str, set(JAGGED_OPS_TABLE) - called)) == []


@pytest.mark.covers("registration.aten::_jagged_to_padded_dense_forward and aten::_padded_dense_to_jagged_forward")
def test_padding_and_back():
    x = jagged(DEVICE)
    values, offsets = x.values(), x.offsets()
    dense = torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets], [3], 0.0)
    for total in (6, None):
        torch.testing.assert_close(torch.ops.aten._padded_dense_to_jagged_forward(dense, [offsets], total), values)


def test_a_number_cannot_be_padded():
    offsets = torch.tensor([0, 1], device=DEVICE)
    with pytest.raises(RuntimeError, match="at least one dimension"):
        torch.ops.aten._jagged_to_padded_dense_forward(torch.tensor(1.0, device=DEVICE), [offsets], [2])


def test_moving_them():
    assert_same(HERE, jagged("cpu").to(DEVICE), jagged("cpu"))
    assert jagged(DEVICE).cpu().device.type == "cpu"
    second = jagged(DEVICE).to(f"{DEVICE}:1")
    assert second.values().device.index == second.offsets().device.index == 1
    pinned = jagged("cpu").pin_memory()
    assert pinned.is_pinned()
    assert_same(HERE, pinned.to(DEVICE, non_blocking=True), jagged("cpu"))


def test_moving_keeps_the_ragged_structure():
    """What had one structure on the CPU has one on the device, and can be added."""
    x = jagged("cpu")
    assert_same(HERE, x.to(DEVICE) + x.sin().to(DEVICE), x + x.sin())


def test_components_of_two_devices_are_refused():
    parts = [torch.ones(2, 4, device=DEVICE), torch.ones(3, 4)]
    with pytest.raises(RuntimeError, match="same device"):
        torch.nested.as_nested_tensor(parts, layout=torch.jagged)


def test_copied_pickled_saved_and_printed(tmp_path):
    x = jagged(DEVICE)
    torch.save(x, tmp_path / "jagged.pt")
    for again in (
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        torch.load(tmp_path / "jagged.pt", weights_only=False),
    ):
        assert_same(HERE, again, jagged("cpu"))
    assert repr(x).startswith("NestedTensor(size=(3, ")
    assert f"device='{DEVICE}:0'" in repr(x) or f"device={DEVICE}:0" in repr(x)


@pytest.mark.no_sync(strict=True)
def test_layers_of_a_model_never_wait_for_the_device(allow_sync):
    """No size of a layer depends on the data where the tensor knows its shortest and longest component."""
    torch.manual_seed(0)
    with allow_sync():
        x = jagged(DEVICE, 8)
        model = torch.nn.Sequential(
            *(torch.nn.LayerNorm(8), torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.1)),
            torch.nn.Linear(16, 8),
        ).to(DEVICE)
    model(x).to_padded_tensor(0.0).square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_assert_same_notices_other_numbers():
    with pytest.raises(AssertionError, match="not close"):
        assert_same(HERE, jagged(DEVICE) + 1, jagged("cpu"))
    with pytest.raises(AssertionError, match="a result is on cpu"):
        assert_same(HERE, jagged("cpu"), jagged("cpu"))
    assert pytree.tree_leaves(jagged(DEVICE))
