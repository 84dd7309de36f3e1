# SPDX-License-Identifier: BSD-3-Clause
"""Operators that a GPU supports for a dtype and the CPU does not compute in another dtype and round the result."""

import pytest
import torch
from parity import DEVICE

pytestmark = pytest.mark.no_fallback

F = torch.nn.functional
REDUCED = [torch.float16, torch.bfloat16]


def against_float(operation, x, dtype, *, backward=True):
    """Forward and backward in `dtype` on the device, against the same in float on the CPU."""
    ours = x.to(dtype).to(DEVICE)
    theirs = x.to(dtype).float()
    if backward:
        ours.requires_grad_()
        theirs.requires_grad_()
    result, expected = operation(ours), operation(theirs)
    assert result.dtype == dtype
    assert result.device.type == DEVICE
    close = {"rtol": 2e-2, "atol": 2e-2}
    torch.testing.assert_close(result.float().cpu(), expected, **close)
    if backward:
        result.backward(torch.ones_like(result))
        expected.backward(torch.ones_like(expected))
        assert ours.grad.dtype == dtype
        torch.testing.assert_close(ours.grad.float().cpu(), theirs.grad, **close)


@pytest.mark.parametrize("dtype", REDUCED, ids=str)
@pytest.mark.parametrize(
    "operation",
    [
        lambda x: F.avg_pool3d(x, 2),
        lambda x: F.avg_pool3d(x[0], 2, stride=1, padding=1, count_include_pad=False),
    ],
)
def test_average_pooling_in_three_dimensions(operation, dtype):
    against_float(operation, torch.randn(1, 2, 4, 4, 4), dtype)


@pytest.mark.parametrize("dtype", REDUCED, ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_upsampling(mode, dtype):
    against_float(lambda x: F.interpolate(x, (5, 3), mode=mode, antialias=True), torch.randn(1, 2, 4, 4), dtype)


def test_out_of_an_operator_that_computes_in_another_dtype():
    x = torch.randn(1, 1, 4, 4, 4).half()
    out = torch.empty(0, dtype=torch.float16, device=DEVICE)
    torch._C._nn.avg_pool3d(x.to(DEVICE), 2, out=out)
    torch.testing.assert_close(out.float().cpu(), F.avg_pool3d(x.float(), 2), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", REDUCED, ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_margin_losses(reduction, dtype):
    x, target = torch.randn(3, 4), torch.tensor([0, 3, 1])
    against_float(lambda t: F.multi_margin_loss(t, target.to(t.device), reduction=reduction), x, dtype)
    labels = torch.tensor([[0, 3, -1, 0], [1, -1, 0, 0], [2, 0, 1, -1]])
    against_float(lambda t: F.multilabel_margin_loss(t, labels.to(t.device), reduction=reduction), x, dtype)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_histogram_of_integers(dtype):
    x = torch.tensor([1, 2, 1, 5, 100]).to(dtype)
    ours = torch.histc(x.to(DEVICE), 5, 1, 5)
    assert ours.dtype == dtype
    assert ours.cpu().tolist() == [2, 1, 0, 0, 1]
    assert torch.histc(x.to(DEVICE), 2).cpu().tolist() == [4, 1]


def test_leaky_slopes_that_are_random():
    x = torch.tensor([-1.0, 2.0]).half().to(DEVICE)
    y = F.rrelu(x, 0.25, 0.5, training=True)
    assert y.dtype == torch.float16
    assert -0.5 <= y[0].item() <= -0.25
    assert y[1].item() == 2


def test_absolute_values_of_booleans():
    x = torch.tensor([True, False], device=DEVICE)
    assert torch.abs(x).cpu().tolist() == [True, False]
    assert x.abs_().dtype == torch.bool
    assert F.softsign(x).cpu().tolist() == [0.5, 0.0]


def test_trace_of_booleans():
    assert torch.ones(3, 3, dtype=torch.bool, device=DEVICE).trace().item() == 3


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_sum_of_complex_numbers_that_are_numbers(dtype):
    nan = float("nan")
    z = torch.tensor([[1 + 1j, complex(nan, 1)], [complex(1, nan), 2]], dtype=dtype, device=DEVICE)
    assert z.nansum().item() == 3 + 1j
    assert z.nansum(0).cpu().tolist() == [1 + 1j, 2]
    assert z.nansum(1, keepdim=True).shape == (2, 1)
    assert z.nanmean().item() == (3 + 1j) / 2


def test_a_replayed_graph_converts_again():
    x = torch.ones(1, 1, 2, 2, 2, dtype=torch.float16, device=DEVICE)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        y = F.avg_pool3d(x, 2)
    for value in (2, 3):
        x.fill_(value)
        graph.replay()
        assert y.item() == value
