# SPDX-License-Identifier: BSD-3-Clause
"""Nested tensors: those of layout torch.jagged as far as PyTorch's own code goes, and what strided ones can do."""

import pytest
import torch
from parity import DEVICE

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage"),
]

F = torch.nn.functional
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def jagged(device=DEVICE, width=4, *, requires_grad=False):
    torch.manual_seed(11)
    parts = [torch.randn(rows, width) for rows in (2, 3, 1)]
    return torch.nested.nested_tensor(parts, layout=torch.jagged, device=device, requires_grad=requires_grad)


def assert_same_parts(ours, theirs):
    for one, other in zip(ours.unbind(), theirs.unbind(), strict=True):
        assert one.device.type == DEVICE
        torch.testing.assert_close(one.cpu(), other, **CLOSE)


def test_making_them():
    parts = [torch.randn(2, 4, device=DEVICE), torch.randn(3, 4, device=DEVICE)]
    for nested in (
        torch.nested.nested_tensor(parts, layout=torch.jagged),
        torch.nested.as_nested_tensor(parts, layout=torch.jagged),
        torch.nested.nested_tensor_from_jagged(torch.cat(parts), torch.tensor([0, 2, 5], device=DEVICE)),
    ):
        assert nested.device.type == DEVICE
        for one, other in zip(nested.unbind(), parts, strict=True):
            torch.testing.assert_close(one, other)
    padded = torch.randn(2, 5, 4, device=DEVICE)
    narrowed = torch.nested.narrow(padded, 1, 0, torch.tensor([2, 3], device=DEVICE), layout=torch.jagged)
    torch.testing.assert_close(narrowed.unbind()[1], padded[1, :3])
    assert "NestedTensor" in repr(nested)


OPERATIONS = {
    "arithmetic": lambda n: (n * n + 1).sin(),
    "unary": F.gelu,
    "matmul": lambda n: n @ torch.ones(4, 5, device=n.device),
    "linear": lambda n: F.linear(n, torch.ones(5, 4, device=n.device), torch.ones(5, device=n.device)),
    "softmax": lambda n: n.softmax(2),
    "sum": lambda n: n.sum(2, keepdim=True),
    "conversion": lambda n: n.double().float(),
    "chunk": lambda n: n.chunk(2, -1)[1],
    "cat": lambda n: torch.cat([n, n], -1),
    "transpose": lambda n: n.unflatten(-1, (2, 2)).transpose(1, 2).transpose(1, 2).flatten(-2),
    "clone": torch.clone,
    "softmax over the ragged dimension": lambda n: n.softmax(1),
}


# PyTorch itself has no derivative for these.
FORWARD_ONLY = {"softmax", "sum"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_and_their_gradients(name):
    ours, theirs = jagged(requires_grad=True), jagged("cpu", requires_grad=True)
    results = [OPERATIONS[name](nested) for nested in (ours, theirs)]
    assert_same_parts(*results)
    if name in FORWARD_ONLY:
        return
    for result in results:
        (result.values() ** 2).sum().backward()
    assert_same_parts(ours.grad, theirs.grad)


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions_over_the_ragged_dimension(name):
    torch.testing.assert_close(getattr(jagged(), name)(1).cpu(), getattr(jagged("cpu"), name)(1), **CLOSE)


def test_padding_and_back():
    ours, theirs = jagged(requires_grad=True), jagged("cpu", requires_grad=True)
    padded = [nested.to_padded_tensor(-1.0) for nested in (ours, theirs)]
    torch.testing.assert_close(padded[0].cpu(), padded[1])
    for each in padded:
        (each**2).sum().backward()
    assert_same_parts(ours.grad, theirs.grad)
    values, offsets = ours.detach().values(), ours.offsets()
    dense = torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets], [3], 0.0)
    for total in (6, None):
        torch.testing.assert_close(torch.ops.aten._padded_dense_to_jagged_forward(dense, [offsets], total), values)


def test_moving_them():
    assert_same_parts(jagged("cpu").to(DEVICE), jagged("cpu"))
    assert jagged().cpu().device.type == "cpu"
    assert jagged().to("openreg:1").values().device.index == 1


def test_attention_with_gradients():
    inputs = {}
    for device in ("cpu", DEVICE):
        query, key, value = (jagged(device, 16, requires_grad=True) for _ in range(3))
        heads = [nested.unflatten(-1, (2, 8)).transpose(1, 2) for nested in (query, key, value)]
        result = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(-2)
        (result.values() ** 2).sum().backward()
        inputs[device] = (result, query.grad, key.grad, value.grad)
    for one, other in zip(inputs[DEVICE], inputs["cpu"], strict=True):
        torch.testing.assert_close(one.values().cpu(), other.values(), **CLOSE)


# Strided layout


def strided(device=DEVICE, *, requires_grad=False):
    torch.manual_seed(11)
    parts = [torch.randn(2, 4), torch.randn(3, 4)]
    return torch.nested.nested_tensor(parts, device=device, requires_grad=requires_grad)


STRIDED = {
    "add": lambda n: n + n,
    "mul": lambda n: torch.ops.aten.mul.Scalar(n, 2.0),
    "relu": torch.relu,
    "gelu": F.gelu,
    "linear": lambda n: F.linear(n, torch.ones(5, 4, device=n.device)),
    "matmul": lambda n: torch.matmul(n, n.transpose(1, 2)),
    "softmax": lambda n: n.softmax(-1),
    "clone": torch.clone,
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_ones_run_what_attention_needs(name):
    assert_same_parts(STRIDED[name](strided()), STRIDED[name](strided("cpu")))


def test_strided_ones_move_and_pad():
    assert_same_parts(strided("cpu").to(DEVICE), strided("cpu"))
    torch.testing.assert_close(strided().cpu().unbind()[1], strided("cpu").unbind()[1])
    torch.testing.assert_close(strided().to_padded_tensor(0.0).cpu(), strided("cpu").to_padded_tensor(0.0))


@pytest.mark.parametrize("operation", [lambda n: n.sum(-1, keepdim=True), torch.sgn, lambda n: F.dropout(n, 0.5)])
def test_other_operators_on_strided_ones_are_refused(operation):
    with pytest.raises(NotImplementedError, match=r"nested tensors.*torch\.jagged"):
        operation(strided())
    assert (torch.ones(2, device=DEVICE) + 1).sum().item() == 4
