# SPDX-License-Identifier: BSD-3-Clause
"""Fake tensors of the device have the shapes and strides of the kernels' results."""

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


# Which kernel the CPU takes, and thus its memory format, depends on all of these.
@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


CHANNELS_LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("last", [(), ("input",), ("weight",), ("input", "weight")], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("edge", [1, 3])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_convolutions_have_the_memory_format_of_their_operands(dimensions, edge, batch, dtype, last):
    x = torch.randn(batch, 3, *[6] * dimensions, dtype=dtype)
    weight = torch.randn(4, 3, *[edge] * dimensions, dtype=dtype)
    if "input" in last:
        x = x.contiguous(memory_format=CHANNELS_LAST[dimensions])
    if "weight" in last:
        weight = weight.contiguous(memory_format=CHANNELS_LAST[dimensions])
    convolutions(dimensions, x, weight)


def convolutions(dimensions, x, weight):
    """A convolution, its backward, and the transposed one."""
    ones, zeros = [1] * dimensions, [0] * dimensions
    y = check(lambda x, w: torch.convolution(x, w, None, ones, zeros, ones, False, zeros, 1), x, weight)
    options = ([4], ones, zeros, ones, False, zeros, 1, [True, True, True])
    check(lambda g, x, w: torch.ops.aten.convolution_backward(g, x, w, *options), y.cpu(), x, weight)
    check(lambda x, w: torch.convolution(x, w.transpose(0, 1), None, ones, zeros, ones, True, zeros, 1), x, weight)


@pytest.mark.parametrize("channels", [1, 3])
def test_convolutions_of_rows(channels):
    x, weight = torch.randn(2, channels, 5), torch.randn(4, channels, 2)
    convolutions(1, x, weight)
    convolutions(1, x.transpose(1, 2).contiguous().transpose(1, 2), weight)
    convolutions(1, x, weight.transpose(1, 2).contiguous().transpose(1, 2))


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
