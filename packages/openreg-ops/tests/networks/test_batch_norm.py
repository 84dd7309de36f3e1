# SPDX-License-Identifier: BSD-3-Clause
"""Batch normalization gives the CPU's results and gradients, in training and evaluation."""

import copy

import pytest
import torch
from parity import DEVICE, assert_same, check, move_all

pytestmark = pytest.mark.no_fallback

NORMS = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d, 5: torch.nn.BatchNorm3d}
SHAPES = {2: (6, 4), 3: (3, 4, 5), 4: (3, 4, 5, 6), 5: (2, 4, 3, 4, 5)}


def compare(module, x, **tolerance):
    module.zero_grad()
    ours = copy.deepcopy(module).to(DEVICE)
    theirs_in, ours_in = x.clone().requires_grad_(), x.to(DEVICE).requires_grad_()
    expected, result = module(theirs_in), ours(ours_in)
    assert_same(result, expected, **tolerance)
    for each in (expected, result):
        weight = torch.linspace(-1, 1, each.numel()).view(each.shape).to(each.device, each.dtype)
        each.backward(weight)
    assert_same(ours_in.grad, theirs_in.grad, **tolerance)
    for mine, theirs in zip(ours.parameters(), module.parameters(), strict=True):
        assert_same(mine.grad, theirs.grad, **tolerance)
    for mine, theirs in zip(ours.buffers(), module.buffers(), strict=True):
        assert_same(mine, theirs, **tolerance)


@pytest.mark.parametrize("track", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dims", NORMS)
def test_training_and_evaluation(dims, affine, track):
    module = NORMS[dims](4, affine=affine, track_running_stats=track)
    if affine:
        torch.nn.init.uniform_(module.weight)
        torch.nn.init.uniform_(module.bias)
    for _ in range(2):
        compare(module, torch.randn(SHAPES[dims]) * 3 + 1, rtol=1e-4, atol=1e-4)
    module.eval()
    compare(module, torch.randn(SHAPES[dims]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_dtypes(dtype, affine, mixed, training):
    if dtype == torch.float64 and mixed:
        mixed = False  # a lower precision beside float parameters is the only mixture there is
    module = torch.nn.BatchNorm2d(4, affine=affine).to(torch.float32 if mixed else dtype).train(training)
    compare(module, torch.randn(SHAPES[4]).to(dtype), rtol=0.02, atol=0.02)


def test_channels_last():
    module = torch.nn.BatchNorm2d(4)
    compare(module, torch.randn(SHAPES[4]).contiguous(memory_format=torch.channels_last), rtol=1e-4, atol=1e-4)


def test_a_cumulative_average():
    module = torch.nn.BatchNorm2d(4, momentum=None)
    for _ in range(3):
        compare(module, torch.randn(SHAPES[4]), rtol=1e-4, atol=1e-4)


def test_without_any_parameter():
    x = torch.randn(SHAPES[4], requires_grad=True)
    close = {"atol": 1e-4, "rtol": 1e-4}
    check(lambda t: torch.nn.functional.batch_norm(t, None, None, training=True), x, tolerance=close)


def test_relatives():
    x = torch.randn(SHAPES[4], requires_grad=True)
    close = {"atol": 1e-4, "rtol": 1e-4}
    check(torch.nn.functional.instance_norm, x, tolerance=close, strides=False)


def test_a_mixture_of_dtypes_that_has_no_meaning():
    module = torch.nn.BatchNorm2d(4).to(DEVICE)
    with pytest.raises(RuntimeError, match="dtype"):
        module(torch.zeros(SHAPES[4], dtype=torch.float64, device=DEVICE))
    torch.openreg.synchronize()


def test_operands_on_several_devices():
    module = torch.nn.BatchNorm2d(4).to("openreg:1")
    with pytest.raises(RuntimeError, match="openreg:1"):
        module(torch.zeros(SHAPES[4], device="openreg:0"))


def test_an_empty_batch():
    module = torch.nn.BatchNorm2d(4)
    ours = copy.deepcopy(module).to(DEVICE)
    x = torch.zeros(0, 4, 3, 3)
    assert_same(ours(x.to(DEVICE)), module(x))


def operands():
    x, weight, bias = torch.randn(SHAPES[4]), torch.rand(4) + 0.5, torch.randn(4)
    return x, weight, bias, torch.randn(4), torch.rand(4) + 0.5


def compare_operator(operator, *args, **outputs):
    """Results, and what the operator wrote into its operands."""
    theirs, ours = move_all((args, outputs), "cpu"), move_all((args, outputs), DEVICE)
    expected = operator(*theirs[0], **theirs[1])
    result = operator(*ours[0], **ours[1])
    assert_same((result, ours), (expected, theirs), strides=False, rtol=1e-4, atol=1e-4)
    return expected


@pytest.mark.parametrize("training", [True, False])
def test_the_family_with_running_statistics(training):
    aten = torch.ops.aten
    settings = (training, 0.3, 1e-3)
    compare_operator(aten._native_batch_norm_legit, *operands(), *settings)
    saved = 4 if training else 0
    places = {"out": torch.empty(SHAPES[4]), "save_mean": torch.empty(saved), "save_invstd": torch.empty(saved)}
    compare_operator(aten._native_batch_norm_legit.out, *operands(), *settings, **places)
    compare_operator(aten.native_batch_norm.out, *operands(), *settings, **places)


def test_the_family_without_running_statistics():
    aten = torch.ops.aten
    compare_operator(aten._native_batch_norm_legit.no_stats, *operands()[:3], True, 0.1, 1e-3)
    places = {"out": torch.empty(0), "save_mean": torch.empty(0), "save_invstd": torch.empty(0)}
    compare_operator(aten._native_batch_norm_legit.no_stats_out, *operands()[:3], True, 0.1, 1e-3, **places)
    compare_operator(aten._native_batch_norm_legit_no_training, *operands(), 0.1, 1e-3)


@pytest.mark.parametrize("wrong", ["out", "save_mean", "save_invstd"])
def test_an_output_that_is_refused_leaves_the_running_statistics(wrong):
    """Unlike on the CPU, which updates them first."""
    x, weight, bias, mean, var = move_all(operands(), DEVICE)
    places = {name: torch.empty(0, device=DEVICE) for name in ("out", "save_mean", "save_invstd")}
    places[wrong] = places[wrong].int()
    before = mean.cpu(), var.cpu()
    with pytest.raises(RuntimeError, match="dtype"):
        torch.ops.aten.native_batch_norm.out(x, weight, bias, mean, var, True, 0.3, 1e-3, **places)
    torch.testing.assert_close((mean.cpu(), var.cpu()), before, rtol=0, atol=0)


def test_the_family_with_a_reserve():
    aten = torch.ops.aten
    x, weight, bias, mean, var = operands()
    _, save_mean, save_invstd, reserve = compare_operator(
        aten._batch_norm_with_update, x, weight, bias, mean, var, 0.1, 1e-3
    )
    compare_operator(aten._batch_norm_no_update, x, weight, bias, mean, var, 0.1, 1e-3)
    rest = (mean, var, save_mean, save_invstd, True, 1e-3, [True, True, True], reserve)
    compare_operator(aten.batch_norm_backward, torch.randn(SHAPES[4]), x, weight, *rest)
