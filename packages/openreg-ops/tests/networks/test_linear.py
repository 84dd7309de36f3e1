# SPDX-License-Identifier: BSD-3-Clause
"""aten::linear, whose kernel replaces PyTorch's composite, has the CPU's results and gradients."""

import pytest
import torch
from parity import DEVICE, check, check_failure, is_busy
from torch.nn.functional import linear

pytestmark = pytest.mark.no_fallback


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4), (2, 0, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_forward_and_backward(shape, bias):
    x, weight = torch.randn(shape, requires_grad=True), torch.randn(5, 4, requires_grad=True)
    check(linear, x, weight, torch.randn(5, requires_grad=True) if bias else None)


def test_a_weight_that_is_a_vector():
    check(linear, torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True))
    check(linear, torch.randn(2, 3, 4, requires_grad=True), torch.randn(4, requires_grad=True), torch.tensor(2.0))


@pytest.mark.parametrize(("features", "outputs"), [(0, 5), (4, 0), (0, 0)])
def test_no_features_and_no_outputs(features, outputs):
    x, weight = torch.randn(3, 2, features, requires_grad=True), torch.randn(outputs, features, requires_grad=True)
    check(linear, x, weight, torch.randn(outputs, requires_grad=True))


@pytest.mark.parametrize("chosen", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_only_the_gradients_that_are_wanted(chosen):
    operands = torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(5)
    check(linear, *[operand.requires_grad_(i in chosen) for i, operand in enumerate(operands)])


def test_operands_of_any_layout():
    x, weight = torch.randn(4, 3, 2).transpose(0, 2), torch.randn(4, 5).t()
    check(linear, x.requires_grad_(), weight.requires_grad_(), torch.randn(10)[::2].requires_grad_())
    check(linear, torch.randn(1, 4).expand(3, 4), weight.detach())


def test_the_gradient_of_a_matrix_by_columns_lies_by_columns():
    x, weight = torch.randn(3, 8, device=DEVICE).t().requires_grad_(), torch.randn(4, 3, device=DEVICE)
    linear(x, weight).sum().backward()
    assert x.grad.stride() == (1, 8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.int64])
def test_dtypes(dtype):
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype.itemsize == 2 else None
    x, weight, bias = (torch.randn(shape).mul(4).to(dtype) for shape in ((2, 3, 4), (5, 4), (5,)))
    check(linear, x, weight, bias, tolerance=tolerance)


def test_second_derivatives():
    operands = [torch.randn(s, dtype=torch.float64, device=DEVICE).requires_grad_() for s in ((2, 4), (5, 4), (5,))]
    with torch.openreg.fallback_mode("allow"):  # for what the check itself computes
        assert torch.autograd.gradgradcheck(linear, operands)


def test_the_host_does_not_wait(gate):
    x, weight, bias = (torch.randn(s, device=DEVICE).requires_grad_() for s in ((2, 3, 4), (5, 4), (5,)))
    gate.close()
    torch.autograd.grad(linear(x, weight, bias).sum(), (x, weight, bias))
    assert is_busy()


@pytest.mark.parametrize("shapes", [((2, 3), (4, 5)), ((2, 3, 4), (4, 5))], ids=str)
def test_mistakes_have_pytorchs_messages(shapes):
    check_failure(linear, *map(torch.ones, shapes))


def test_mixed_devices_and_dtypes_are_refused():
    x, weight = torch.ones(2, 3, device=DEVICE), torch.ones(4, 3)
    for other in (weight, weight.to("openreg:1")):
        with pytest.raises(RuntimeError, match="same device"):
            linear(x, other)
    with pytest.raises(RuntimeError, match="Float and Double"):
        linear(x, weight.double().to(DEVICE))


@pytest.mark.filterwarnings("ignore:.*torch.jit.:DeprecationWarning")
def test_transforms():
    x, weight = torch.randn(6, 3, 4).to(DEVICE), torch.randn(5, 4).to(DEVICE)
    torch.testing.assert_close(torch.vmap(linear, (0, None))(x, weight), linear(x, weight))
    with torch.openreg.fallback_mode("allow"):  # for zeros that PyTorch makes
        _, tangent = torch.func.jvp(lambda t: linear(t, weight), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(tangent, linear(torch.ones_like(x), weight))
