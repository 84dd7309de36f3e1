# SPDX-License-Identifier: BSD-3-Clause
"""Dropout keeps and scales the right share of elements, in forward and backward, and a seed reproduces its mask."""

import pytest
import torch
from parity import DEVICE

pytestmark = pytest.mark.no_fallback

COUNT = 100_000


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_elements_are_kept_or_dropped(p, dtype):
    y = torch.nn.functional.dropout(torch.full((COUNT,), 3.0, dtype=dtype, device=DEVICE), p).cpu()
    assert y.dtype == dtype
    kept = y != 0
    assert kept.double().mean().item() == pytest.approx(1 - p, abs=0.01)
    scaled = y[kept].double()
    torch.testing.assert_close(scaled, torch.full_like(scaled, 3 / (1 - p)), rtol=1e-2, atol=0)


def test_the_gradient_goes_through_what_was_kept():
    x = torch.ones(COUNT, device=DEVICE, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.3)
    y.backward(torch.full((COUNT,), 2.0, device=DEVICE))
    torch.testing.assert_close(x.grad.cpu(), 2 * y.detach().cpu())


def test_a_seed_repeats_the_mask_and_strides_do_not_matter():
    x = torch.ones(300, 200)
    results = []
    for layout in (x.to(DEVICE), x.t().contiguous().to(DEVICE).t(), x.to(DEVICE)):
        torch.manual_seed(8)
        results.append(torch.nn.functional.dropout(layout, 0.5).cpu())
    assert results[0].equal(results[2])
    assert results[0].equal(results[1])
    assert not torch.nn.functional.dropout(x.to(DEVICE), 0.5).cpu().equal(results[0])


ORDERS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 3),
    "permuted": lambda x: x.permute(1, 2, 3, 0),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "sliced": lambda x: x[..., ::2],
    "sliced rows": lambda x: x[::2, 1:],
    "expanded": lambda x: x[:1].expand(4, 3, 5, 6),
}


@pytest.mark.parametrize("order", ORDERS)
def test_results_have_the_strides_of_the_cpus(order):
    def strides_on(device):
        x = ORDERS[order](torch.ones(4, 3, 5, 6, device=device))
        leaf = x.detach().requires_grad_()
        y = torch.nn.functional.dropout(leaf, 0.5)
        (gradient,) = torch.autograd.grad(y.sum(), leaf)
        dropped, mask = torch.native_dropout(x, 0.5, True)
        scaled = torch.ops.aten.native_dropout_backward(x, mask, 2.0)
        return [tensor.stride() for tensor in (y, gradient, dropped, mask, scaled)]

    assert strides_on(DEVICE) == strides_on("cpu")


def test_what_is_transposed_can_be_viewed_again():
    x = torch.ones(4, 6, device=DEVICE)
    y = torch.nn.functional.dropout(x.transpose(0, 1), 0.5).transpose(0, 1)
    assert y.view(-1).shape == (24,)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_the_ends(p):
    x = torch.ones(100, device=DEVICE, requires_grad=True)
    for y in (torch.nn.functional.dropout(x, p), torch.native_dropout(x, p, True)[0]):
        assert y.detach().cpu().tolist() == [1 - p] * 100
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert gradient.cpu().tolist() == [1 - p] * 100


def test_the_operator_itself():
    x = torch.ones(1000, device=DEVICE)
    y, mask = torch.native_dropout(x, 0.5, True)
    assert mask.dtype == torch.bool
    assert (y.cpu() != 0).equal(mask.cpu())
    y, mask = torch.native_dropout(x, 0.5, False)
    assert y.cpu().equal(x.cpu())
    assert mask.cpu().all()
    y, mask = torch.native_dropout(x[:0], 0.5, True)
    assert (y.shape, mask.shape) == ((0,), (0,))
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        torch.native_dropout(x, 1.5, True)


def test_evaluation_leaves_values_alone():
    module = torch.nn.Dropout(0.5).eval()
    x = torch.ones(10, device=DEVICE)
    assert module(x).cpu().tolist() == [1.0] * 10


def test_channels():
    y = torch.nn.functional.dropout2d(torch.ones(50, 40, 3, 3, device=DEVICE), 0.5).cpu()
    assert set(y.unique().tolist()) == {0, 2}
    assert y.flatten(2).std(-1).max().item() == 0
