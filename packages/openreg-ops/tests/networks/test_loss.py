# SPDX-License-Identifier: BSD-3-Clause
"""The losses of torch.nn give the CPU's values and gradients."""

import pytest
import torch
from parity import DEVICE, check
from torch.nn import functional

pytestmark = pytest.mark.no_fallback

TARGETS = torch.tensor([1, 0, 4, 2, 4, 3])


def logits():
    return torch.randn(6, 5, requires_grad=True)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "options",
    [{}, {"ignore_index": 4}, {"label_smoothing": 0.1}, {"weight": torch.tensor([0.1, 1.0, 2.0, 0.5, 1.5])}],
    ids=["plain", "ignore", "smooth", "weighted"],
)
def test_cross_entropy(options, reduction):
    check(lambda x, t, **o: functional.cross_entropy(x, t, reduction=reduction, **o), logits(), TARGETS, **options)


def test_cross_entropy_with_probabilities():
    check(functional.cross_entropy, logits(), torch.softmax(torch.randn(6, 5), 1))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", [functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss])
def test_distances(loss, reduction):
    with torch.openreg.fallback_mode("allow"):  # some derivatives have no kernel yet
        check(loss, logits(), torch.randn(6, 5), reduction=reduction)


TRAINING = """
import torch, openreg_ops
from torch.nn import functional
torch.set_warn_always(True)
x = torch.ones(6, 5, device="openreg", requires_grad=True)
for loss in (functional.mse_loss, functional.smooth_l1_loss, functional.huber_loss, functional.l1_loss):
    for reduction in ("mean", "sum", "none"):
        loss(x, torch.zeros_like(x), reduction=reduction).sum().backward()
torch.openreg.synchronize()
"""


def test_a_training_loop_prints_nothing(run_python):
    """A warning of an engine thread would be seen on the standard error of the process, and nowhere else."""
    result = run_python(TRAINING)
    assert (result.returncode, result.stderr) == (0, "")


def test_negative_log_likelihood():
    check(lambda x, t: functional.nll_loss(functional.log_softmax(x, 1), t), logits(), TARGETS)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("function", [functional.softmax, functional.log_softmax])
def test_softmax(function, dim):
    check(function, logits(), dim=dim)
    check(function, torch.randn(6, 5).t().requires_grad_(), dim=dim)
    check(function, torch.randn(6, 5).half(), dim=dim, dtype=torch.float32)


def test_softmax_of_extreme_numbers():
    x = torch.tensor([[1e4, -1e4, 0.0], [float("-inf"), 0.0, 0.0]])
    check(torch.softmax, x, dim=1)
    check(torch.log_softmax, x, dim=1)


def test_a_target_out_of_range_is_found_at_the_next_wait():
    x = torch.randn(2, 3, device=DEVICE)
    loss = functional.cross_entropy(x, torch.tensor([1, 7], device=DEVICE))
    with pytest.raises(torch.AcceleratorError, match=r"aten::nll_loss_forward.*out of bounds"):
        loss.item()
    torch.openreg.reset_device()
    assert functional.cross_entropy(x, torch.tensor([1, 2], device=DEVICE)).isfinite().item()


def test_shapes_that_do_not_match_are_refused_on_the_calling_line():
    x = torch.randn(2, 3, device=DEVICE)
    with pytest.raises(ValueError, match="batch_size"):
        functional.cross_entropy(x, torch.tensor([1, 0, 2], device=DEVICE))
    with pytest.raises(RuntimeError, match="size"):
        torch.ops.aten.mse_loss(x, torch.randn(4, device=DEVICE))
    torch.openreg.synchronize()


@pytest.mark.parametrize("label", [-1, 3])
@pytest.mark.parametrize("targets", ["vector", "matrix"])
def test_a_label_of_ctc_that_is_no_class_is_found_at_the_next_wait(label, targets):
    """The CPU reads beyond the probabilities. Padding of targets in a matrix is no label."""
    log_probs = torch.randn(5, 1, 3).log_softmax(-1)
    matrix = torch.tensor([[1, 2, label]])
    check(functional.ctc_loss, log_probs, matrix, (5,), (2,))
    labels = matrix if targets == "matrix" else matrix[0]
    torch.ops.aten._ctc_loss(log_probs.to(DEVICE), labels.to(DEVICE), [5], [3])
    with pytest.raises(torch.AcceleratorError, match=r"_ctc_loss.*below 3"):
        torch.openreg.synchronize()
    torch.openreg.reset_device()
