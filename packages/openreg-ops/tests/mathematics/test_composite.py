# SPDX-License-Identifier: BSD-3-Clause
"""Composite operators that have a kernel of this package give the CPU's results; linear is in test_linear.py."""

import warnings

import pytest
import torch
from parity import DEVICE, check, launches_of

pytestmark = pytest.mark.no_fallback

ODD = [0.0, -1.5, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.bool])
def test_isfinite(dtype):
    numbers = torch.tensor(ODD if dtype.is_floating_point or dtype.is_complex else [0, 1, 2]).to(dtype)
    check(torch.isfinite, numbers)
    check(torch.isfinite, numbers.repeat(6, 1).t()[:, ::2])
    check(torch.isfinite, torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last))


def test_isfinite_is_one_launch():
    """Why it is overridden: the operators that PyTorch makes it of are more. test_launch_budgets.py has the limit."""
    x = torch.ones(3, device=DEVICE)
    composite, _ = launches_of(lambda: (x == x) * (x.abs() != float("inf")))
    assert launches_of(lambda: torch.isfinite(x)) < (composite, 0)


def test_isfinite_of_what_needs_a_gradient():
    x = torch.ones(3, device=DEVICE, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finite = torch.isfinite(x)
        torch.where(finite, x * 2, x).sum().backward()
    assert not finite.requires_grad
    assert x.grad.tolist() == [2, 2, 2]
