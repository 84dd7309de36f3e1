# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers from parts, floor division, remainders, shifts, frexp and logit give the CPU's results."""

import operator

import pytest
import torch
from parity import DEVICE, check

pytestmark = pytest.mark.no_fallback

X, Y = torch.randn(3, 4), torch.randn(4)


def test_complex_numbers_from_parts():
    for operation in (torch.complex, torch.polar):
        check(operation, X, Y)
        check(operation, X.t(), Y[:, None])
        check(operation, X.clone().requires_grad_(), Y.clone().requires_grad_())
        check(operation, X.double(), torch.tensor(2.0, dtype=torch.float64))
        check(operation, torch.empty(0), torch.empty(0))
        with pytest.raises(RuntimeError, match="Float"):
            operation(X.to(DEVICE), X.double().to(DEVICE))
        with pytest.raises(RuntimeError, match="Half, Float or Double"):
            operation(X.long().to(DEVICE), X.long().to(DEVICE))


def test_floor_division():
    integers = torch.tensor([-7, 7, 6])
    check(lambda t: t // 2, integers)
    check(torch.floor_divide, integers, torch.tensor([2, -2, 4]))
    check(torch.floor_divide, X, Y)
    check(lambda t: t.floor_divide_(3), X)
    check(lambda t, d: torch.floor_divide(t, d, out=torch.empty(0, device=t.device)), X, Y)
    with pytest.raises(NotImplementedError, match="div_floor_cpu"):
        torch.floor_divide(X.to(DEVICE, torch.complex64), 2)


def test_reversed_subtraction():
    check(torch.rsub, X, Y)
    check(lambda t, u: torch.rsub(t, u, alpha=2), X.clone().requires_grad_(), Y.clone().requires_grad_())
    check(lambda t: 5 - t, torch.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="two bool tensors"):
        torch.rsub(X.to(DEVICE) > 0, Y.to(DEVICE) > 0)


def test_remainders_of_a_number():
    for number in (7, -7, 2.5):
        check(lambda t, number=number: number % t, torch.tensor([2, -3, 5]))
        check(lambda t, number=number: torch.remainder(number, t), X)
    check(lambda t: 7 % t, torch.tensor([2, 3], dtype=torch.uint8))


def test_shifts_by_pythons_signs():
    whole = torch.tensor([[1, 5, -7], [0, 3, 64]])
    for amount in (2, torch.tensor([1, 2, 3]), torch.tensor(3, dtype=torch.int8)):
        check(operator.lshift, whole, amount)
        check(operator.rshift, whole.t().contiguous().t(), amount)
        check(operator.ilshift, whole, amount)
        check(operator.irshift, whole, amount)
    check(lambda t: 2 << t, torch.tensor([1, 2]))
    check(lambda t: t << 7, torch.tensor([1, 2], dtype=torch.uint8))
    with pytest.raises(NotImplementedError, match="lshift_cpu"):
        X.to(DEVICE) << 1
    with pytest.raises(RuntimeError, match="can't be cast"):
        whole.to(DEVICE).__ilshift__(Y[:3].to(DEVICE))


def test_frexp():
    check(torch.frexp, X)
    check(torch.frexp, X.t().double())
    check(lambda t: torch.frexp(t)[0], X.clone().requires_grad_())
    with pytest.raises(RuntimeError, match="floating-point"):
        torch.frexp(torch.ones(2, dtype=torch.int64, device=DEVICE))


def test_logit():
    probabilities = torch.rand(3, 4)
    check(torch.logit, probabilities.clone().requires_grad_())
    check(lambda t: t.logit(0.2), probabilities.t())
    check(torch.logit, torch.tensor([0, 1]))
    check(lambda t: t.logit_(), probabilities)
    x = probabilities.to(DEVICE)
    torch.logit(x, out=x)
    torch.testing.assert_close(x.cpu(), probabilities.logit())
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, dtype=torch.int64, device=DEVICE).logit_()
