# SPDX-License-Identifier: BSD-3-Clause
"""Nested tensors: every operator of PyTorch's own table on the layout torch.jagged, and uses of the strided layout.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` are then skipped.
"""

from typing import Any

import pytest
import torch
from torch.nn import functional

from openreg_testing.conformance import jagged
from openreg_testing.conformance.harness import DeviceUnderTest, covers

PADDING = "registration.aten::_jagged_to_padded_dense_forward and aten::_padded_dense_to_jagged_forward"
ATTENTION = "registration.attention on nested tensors of layout torch.jagged"
STRIDED = "registration.kernels of NestedTensorPrivateUse1"

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")


def parts(device: torch.device, *lengths: int, width: int = 4) -> list[torch.Tensor]:
    """Returns matrices with these numbers of rows, on the device."""
    return [(torch.arange(n * width).reshape(n, width) / 8 - 1).to(device) for n in lengths]


def ragged(device: torch.device, *lengths: int, heads: int = 2, width: int = 8, seed: int = 1) -> Any:
    """Returns a jagged tensor of random sequences with heads, which is a leaf and requires a gradient."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(sum(lengths), heads, width, generator=generator)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return torch.nested.nested_tensor_from_jagged(
        values.to(device), offsets.to(device), min_seqlen=min(lengths), max_seqlen=max(lengths)
    ).requires_grad_()


@covers(PADDING)
@pytest.mark.parametrize("entry", jagged.entries(), ids=lambda op: op.full_name)
def test_an_operator_on_jagged_tensors_gives_what_the_cpu_gives(device: DeviceUnderTest, entry: Any) -> None:
    """An operator on jagged nested tensors has the results, gradients and exception types of the CPU."""
    jagged.compare(device.first, entry)


@covers(PADDING)
def test_jagged_tensors_are_made_and_taken_apart(device: DeviceUnderTest) -> None:
    """unbind() returns the parts of nested_tensor, as_nested_tensor, nested_tensor_from_jagged and narrow."""
    given = parts(device.first, 2, 3, 1)
    offsets = torch.tensor([0, 2, 5, 6]).to(device.first)
    padded = torch.zeros(3, 3, 4).to(device.first)
    for i, part in enumerate(given):
        padded[i, : len(part)] = part
    lengths = torch.tensor([2, 3, 1]).to(device.first)
    for made in (
        torch.nested.nested_tensor(given, layout=torch.jagged),
        torch.nested.as_nested_tensor(given, layout=torch.jagged),
        torch.nested.nested_tensor_from_jagged(torch.cat(given), offsets),
        torch.nested.narrow(padded, 1, 0, lengths, layout=torch.jagged),
    ):
        assert made.device == device.first
        assert [part.tolist() for part in made.unbind()] == [part.tolist() for part in given]
    assert torch.equal(torch.nested.nested_tensor(given, layout=torch.jagged).to_padded_tensor(0.0).cpu(), padded.cpu())


@covers(PADDING)
def test_jagged_tensors_move_there_and_back(device: DeviceUnderTest) -> None:
    """Tensor.to() moves the values and offsets of a jagged tensor to the device and back."""
    here: Any = torch.nested.nested_tensor(parts(torch.device("cpu"), 2, 3), layout=torch.jagged)
    there = here.to(device.first)
    assert there.device == there.offsets().device == device.first
    back = there.to("cpu")
    assert all(torch.equal(one, other) for one, other in zip(back.unbind(), here.unbind(), strict=True))


@covers(ATTENTION)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_on_jagged_tensors_is_that_of_each_sequence(accelerator: DeviceUnderTest, causal: bool) -> None:
    """Attention on jagged tensors has the results and gradients of attention on each sequence alone."""
    operands = [ragged(accelerator.first, 5, 2, 7, seed=seed) for seed in (1, 2, 3)]
    offsets = operands[0].offsets()
    query, key, value = (
        torch.nested.nested_tensor_from_jagged(x.values(), offsets, min_seqlen=2, max_seqlen=7) for x in operands
    )
    found = functional.scaled_dot_product_attention(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), is_causal=causal
    )
    found.transpose(1, 2).values().square().sum().backward()  # type: ignore[no-untyped-call]
    plain = [ragged(torch.device("cpu"), 5, 2, 7, seed=seed) for seed in (1, 2, 3)]
    expected = []
    for sequence in zip(*(x.unbind() for x in plain), strict=True):
        query, key, value = (rows.transpose(0, 1).unsqueeze(0) for rows in sequence)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        expected.append(attended[0].transpose(0, 1))
    torch.cat(expected).square().sum().backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found.transpose(1, 2).values().cpu(), torch.cat(expected), rtol=1e-3, atol=1e-4)
    for one, other in zip(operands, plain, strict=True):
        assert one.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(one.grad.values().cpu(), other.grad.values(), rtol=1e-3, atol=1e-4)


@covers(STRIDED)
def test_strided_nested_tensors_are_padded_and_taken_apart(device: DeviceUnderTest) -> None:
    """The device supports nested tensors of strided layout: construction, arithmetic, padding and unbind()."""
    given = parts(device.first, 2, 3)
    made = torch.nested.nested_tensor(given)
    assert made.device == device.first
    doubled = made + made
    assert [part.tolist() for part in doubled.unbind()] == [(2 * part).tolist() for part in given]
    padded = functional.relu(made).to_padded_tensor(0.0)
    assert padded.shape == (2, 3, 4)
    assert padded[0, 2].tolist() == [0.0] * 4


@covers(STRIDED)
def test_a_transformer_encoder_leaves_padding_out(device: DeviceUnderTest) -> None:
    """In evaluation nn.TransformerEncoder computes a batch without its padding, and returns zeros in its place."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    plain = torch.nn.TransformerEncoder(layer, 2).eval()
    there = torch.nn.TransformerEncoder(layer, 2).eval()
    there.load_state_dict(plain.state_dict())
    there.to(device.first)
    batch, padding = torch.randn(2, 3, 8), torch.tensor([[False, False, True], [False, True, True]])
    with torch.no_grad():
        expected = plain(batch, src_key_padding_mask=padding)
        found = there(batch.to(device.first), src_key_padding_mask=padding.to(device.first))
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-4)
