# SPDX-License-Identifier: BSD-3-Clause
"""Fake tensors of the device have the shapes and strides that its kernels give."""

import pytest
import torch
from parity import DEVICE
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils import _pytree as pytree

pytestmark = pytest.mark.no_fallback


def described(results):
    leaves = [leaf for leaf in pytree.tree_leaves(results) if leaf is not None]
    return [(tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.device) for leaf in leaves]


def check(function, *inputs):
    """The same of real and of fake tensors; returns the real result."""
    inputs = [x.to(DEVICE) for x in inputs]
    real = function(*inputs)
    mode = FakeTensorMode()
    with mode:
        fake = function(*(mode.from_tensor(x) for x in inputs))
    assert described(fake) == described(real)
    return real


FORMATS = (torch.contiguous_format, torch.channels_last)


@pytest.mark.parametrize("of_weight", FORMATS, ids=str)
@pytest.mark.parametrize("of_input", FORMATS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_convolutions_have_the_memory_format_of_their_operands(of_input, of_weight, dtype):
    x = torch.randn(2, 3, 6, 5, dtype=dtype).contiguous(memory_format=of_input)
    weight = torch.randn(4, 3, 3, 3, dtype=dtype).contiguous(memory_format=of_weight)
    y = check(lambda x, w: functional.conv2d(x, w, padding=1), x, weight)
    check(lambda x, w: functional.conv_transpose2d(x, w.transpose(0, 1)), x, weight)
    options = ([0], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
    check(lambda g, x, w: torch.ops.aten.convolution_backward(g, x, w, *options), y.cpu(), x, weight)


@pytest.mark.parametrize("dimensions", [1, 3])
def test_convolutions_of_other_dimensions(dimensions):
    convolution = getattr(functional, f"conv{dimensions}d")
    check(convolution, torch.randn(2, 3, *[5] * dimensions), torch.randn(4, 3, *[2] * dimensions))


def test_convolutions_of_other_devices_are_pytorchs():
    mode = FakeTensorMode()
    with mode:
        y = functional.conv2d(torch.empty(2, 3, 6, 5), torch.empty(4, 3, 3, 3))
    assert (y.device.type, y.shape) == ("cpu", (2, 4, 4, 3))


def of_lstm(has_bias):
    return [torch.randn(32), torch.randn(32)] if has_bias else []


@pytest.mark.parametrize("has_bias", [True, False])
def test_cells(has_bias):
    gates, state = torch.randn(4, 24), torch.randn(4, 8)
    biases = [torch.randn(24), torch.randn(24)] if has_bias else []
    _, workspace = check(torch.ops.aten._thnn_fused_gru_cell, gates, gates.clone(), state, *biases)
    check(torch.ops.aten._thnn_fused_lstm_cell, torch.randn(4, 32), torch.randn(4, 32), state, *of_lstm(has_bias))
    backward = torch.ops.aten._thnn_fused_gru_cell_backward
    check(lambda grad, workspace: backward(grad, workspace, has_bias), state, workspace.cpu())
