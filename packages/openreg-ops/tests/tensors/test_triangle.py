# SPDX-License-Identifier: BSD-3-Clause
"""Triangular parts, and factorizations that return them, are right for outputs with any strides."""

import pytest
import torch
from parity import DEVICE, check

pytestmark = pytest.mark.no_fallback

BATCH = torch.linspace(-3, 3, 2 * 3 * 4 * 5).view(2, 3, 4, 5)


def reversed_strides(like):
    """Memory in the opposite order, with a guard before and after it."""
    guarded = torch.full((like.numel() + 64,), 9.0, device=DEVICE)
    inside = guarded[32:-32].view(like.shape[::-1]).permute(tuple(range(like.dim()))[::-1])
    return guarded, inside


def is_intact(guarded):
    content = guarded.cpu()
    return bool((content[:32] == 9).all() and (content[-32:] == 9).all())


@pytest.mark.parametrize("function", [torch.tril, torch.triu])
def test_an_output_whose_matrices_do_not_follow_each_other(function):
    expected = function(BATCH, 1)
    guarded, out = reversed_strides(expected)
    assert function(BATCH.to(DEVICE), 1, out=out) is out
    assert torch.equal(out.cpu(), expected)
    assert is_intact(guarded)


@pytest.mark.parametrize("function", [torch.tril, torch.triu])
def test_in_place_and_gradients(function):
    check(lambda t: function(t.clone().mul_(2), -1), BATCH.clone().requires_grad_())
    check(lambda t: getattr(t, f"{function.__name__}_")(2), BATCH.clone())


def test_factorizations_into_such_outputs():
    matrices = BATCH.sin()
    expected = torch.linalg.lu(matrices)
    pairs = [reversed_strides(part) for part in expected]
    torch.linalg.lu(matrices.to(DEVICE), out=[inside for _, inside in pairs])
    for (guarded, inside), part in zip(pairs, expected, strict=True):
        torch.testing.assert_close(inside.cpu(), part)
        assert is_intact(guarded)
