# SPDX-License-Identifier: BSD-3-Clause
"""The negative log likelihood with a class per pixel gives the CPU's values and gradients."""

import pytest
import torch
from parity import DEVICE, assert_same, check, move_all
from torch.nn import functional

pytestmark = pytest.mark.no_fallback

aten = torch.ops.aten
REDUCTIONS = ["none", "mean", "sum"]


def images(dtype=torch.float32):
    return torch.randn(2, 3, 4, 5).to(dtype).requires_grad_(), torch.randint(3, (2, 4, 5))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("options", [{}, {"ignore_index": 1}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_forward_and_backward(weighted, options, reduction):
    weight = torch.rand(3) if weighted else None
    check(functional.nll_loss, *images(), weight, reduction=reduction, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_dtypes(dtype, reduction):
    check(functional.nll_loss, *images(dtype), reduction=reduction, tolerance={"rtol": 0.02, "atol": 0.02})


def test_relatives():
    check(functional.cross_entropy, *images(), tolerance={"rtol": 1e-5, "atol": 1e-5})
    check(functional.cross_entropy, *images(), label_smoothing=0.1, tolerance={"rtol": 1e-5, "atol": 1e-5})
    volume = torch.randn(2, 3, 4, 5, 2, requires_grad=True)
    check(functional.nll_loss, volume, torch.randint(3, (2, 4, 5, 2)))


def test_operands_that_are_not_contiguous():
    x, target = images()
    check(lambda a, t: functional.nll_loss(a, t.transpose(1, 2)), x, target.transpose(1, 2).contiguous())
    ours = x.detach().transpose(2, 3).contiguous().to(DEVICE).requires_grad_()  # the CPU takes no such gradient
    loss = functional.nll_loss(ours.transpose(2, 3), target.to(DEVICE))
    expected = functional.nll_loss(x, target)
    assert_same(
        (loss, *torch.autograd.grad(loss, ours)),
        (expected, torch.autograd.grad(expected, x)[0].transpose(2, 3)),
        strides=False,
    )


@pytest.mark.parametrize("reduction", [0, 1])
def test_given_outputs(reduction):
    x, target = (each.detach() for each in images())
    expected = aten.nll_loss2d_forward(x, target, None, reduction, -100)
    outputs = [torch.empty(0, device=DEVICE), torch.empty((), device=DEVICE)]
    ours = move_all((x, target), DEVICE)
    aten.nll_loss2d_forward.output(*ours, None, reduction, -100, output=outputs[0], total_weight=outputs[1])
    assert_same(outputs, list(expected))
    grad = torch.ones_like(expected[0])
    given = torch.empty(3, 2, 4, 5, device=DEVICE).transpose(0, 1)
    rest = (None, reduction, -100)
    aten.nll_loss2d_backward.grad_input(grad.to(DEVICE), *ours, *rest, outputs[1], grad_input=given)
    assert_same(given, aten.nll_loss2d_backward(grad, x, target, *rest, expected[1]), strides=False)


def test_a_class_out_of_range_is_reported_at_the_next_synchronization():
    functional.nll_loss(torch.zeros(1, 3, 2, 2, device=DEVICE), torch.full((1, 2, 2), 3, device=DEVICE))
    with pytest.raises(torch.AcceleratorError, match="nll_loss2d"):
        torch.openreg.synchronize()
    torch.openreg.reset_device(0)


def test_mistakes_are_reported_on_the_calling_line():
    x, target = (each.detach().to(DEVICE) for each in images())
    with pytest.raises(RuntimeError, match="size mismatch"):
        aten.nll_loss2d_forward(x, target[:1], None, 1, -100)
    with pytest.raises(RuntimeError, match="3D tensors"):
        aten.nll_loss2d_forward(x, target[0], None, 1, -100)
    with pytest.raises(RuntimeError, match="4D tensors"):
        aten.nll_loss2d_forward(x[0], target, None, 1, -100)
    with pytest.raises(RuntimeError, match="all or no classes"):
        aten.nll_loss2d_forward(x, target, torch.ones(2, device=DEVICE), 1, -100)
    with pytest.raises(RuntimeError, match="int64 or uint8"):
        aten.nll_loss2d_forward(x, target.int(), None, 1, -100)
    with pytest.raises(RuntimeError, match="same device"):
        aten.nll_loss2d_forward(x, target.to("openreg:1"), None, 1, -100)
