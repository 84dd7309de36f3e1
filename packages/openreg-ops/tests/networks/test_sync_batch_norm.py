# SPDX-License-Identifier: BSD-3-Clause
"""The operators that SyncBatchNorm calls between its collectives are right. The CPU has none of them, so parts of a
batch are combined here as processes would do, and compared with BatchNorm over the whole batch."""

import copy

import pytest
import torch
from parity import DEVICE, assert_same, is_busy
from torch import nn

pytestmark = pytest.mark.no_fallback

EPS = 1e-3
CHANNELS = 4
SHAPES = {2: (7, CHANNELS), 3: (7, CHANNELS, 5), 4: (7, CHANNELS, 5, 6), 5: (5, CHANNELS, 2, 3, 4)}
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def batch(shape=SHAPES[4], dtype=torch.float32):
    return (torch.randn(shape) * 3 + 10).to(dtype)


def norm(dims=4, *, affine=True):
    made = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[dims](
        CHANNELS, eps=EPS, momentum=0.3, affine=affine
    )
    if affine:
        nn.init.uniform_(made.weight)
        nn.init.uniform_(made.bias)
    return made


def synchronized(module, parts, gradients):
    """What each of several processes would compute on its part: outputs, gradients of inputs, weights and biases."""
    weight, bias = module.weight, module.bias
    statistics = [torch.batch_norm_stats(part, EPS) for part in parts]
    means, invstds = (torch.stack([pair[i] for pair in statistics]) for i in range(2))
    counts = torch.tensor([part.numel() // CHANNELS for part in parts], device=DEVICE)
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        parts[0], means, invstds, module.running_mean, module.running_var, module.momentum, EPS, counts.to(means.dtype)
    )
    outputs = [torch.batch_norm_elemt(part, weight, bias, mean, invstd, EPS) for part in parts]
    sums = [
        torch.batch_norm_backward_reduce(grad, part, mean, invstd, weight, True, True, True)
        for part, grad in zip(parts, gradients, strict=True)
    ]
    sum_dy, sum_dy_xmu, of_weight, of_bias = (torch.stack([one[i] for one in sums]).sum(0) for i in range(4))
    of_inputs = [
        torch.batch_norm_backward_elemt(grad, part, mean, invstd, weight, sum_dy, sum_dy_xmu, counts.int())
        for part, grad in zip(parts, gradients, strict=True)
    ]
    return torch.cat(outputs), torch.cat(of_inputs), of_weight, of_bias


def compare(module, x, sizes, *, layout=lambda part: part, **tolerance):
    theirs, ours = copy.deepcopy(module), copy.deepcopy(module).to(DEVICE)
    expected_in = x.clone().requires_grad_()
    expected = theirs(expected_in)
    gradient = torch.linspace(-1, 1, x.numel()).view(x.shape).to(x.dtype)
    expected.backward(gradient)
    parts, gradients = ([layout(one.to(DEVICE)) for one in whole.split(sizes)] for whole in (x, gradient))
    with torch.no_grad():
        output, of_input, of_weight, of_bias = synchronized(ours, parts, gradients)
    assert_same((output, of_input), (expected, expected_in.grad), strides=False, **tolerance)
    if module.affine:
        assert_same((of_weight, of_bias), (theirs.weight.grad, theirs.bias.grad), **tolerance)
    assert_same((ours.running_mean, ours.running_var), (theirs.running_mean, theirs.running_var), **tolerance)


@pytest.mark.covers("registration.the operators of SyncBatchNorm")
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dims", SHAPES)
def test_parts_of_a_batch_together_are_the_whole(dims, affine):
    x = batch(SHAPES[dims])
    compare(norm(dims, affine=affine), x, [1, 3, len(x) - 4], **CLOSE)


def test_one_part_is_the_whole():
    compare(norm(), batch(), [7], **CLOSE)


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float(dtype, mixed):
    module = norm() if mixed else norm().to(dtype)
    compare(module, batch(dtype=dtype), [2, 5], rtol=0.02, atol=0.03)
    mean, invstd = torch.batch_norm_stats(batch(dtype=dtype).to(DEVICE), EPS)
    assert mean.dtype == invstd.dtype == torch.float32


def test_double():
    compare(norm().double(), batch(dtype=torch.float64), [2, 5], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "layout",
    [
        lambda part: part.contiguous(memory_format=torch.channels_last),
        lambda part: torch.stack([part, part], 1)[:, 1],
        lambda part: part.transpose(2, 3).contiguous().transpose(2, 3),
    ],
    ids=["channels last", "strided", "transposed"],
)
def test_layouts(layout):
    compare(norm(), batch(), [2, 5], layout=layout, **CLOSE)


def test_results_lie_as_the_input_does():
    x = batch().to(DEVICE).contiguous(memory_format=torch.channels_last)
    mean, invstd = torch.batch_norm_stats(x, EPS)
    y = torch.batch_norm_elemt(x, None, None, mean, invstd, EPS)
    count = torch.tensor([x.numel() // CHANNELS], device=DEVICE, dtype=torch.int32)
    dx = torch.batch_norm_backward_elemt(x, x, mean, invstd, None, mean, mean, count)
    assert y.stride() == dx.stride() == x.stride()


def test_the_form_with_one_count_for_all():
    x = batch().to(DEVICE)
    first, second = torch.batch_norm_stats(x[:3], EPS), torch.batch_norm_stats(x[3:6], EPS)
    means, invstds = (torch.stack(pair) for pair in zip(first, second, strict=True))
    running = [[torch.zeros(CHANNELS, device=DEVICE), torch.ones(CHANNELS, device=DEVICE)] for _ in range(2)]
    counts = torch.full((2,), 90.0, device=DEVICE)
    one = torch.batch_norm_gather_stats(x, means, invstds, *running[0], 0.1, EPS, 90)
    other = torch.batch_norm_gather_stats_with_counts(x, means, invstds, *running[1], 0.1, EPS, counts)
    for mine, theirs in zip([*one, *running[0]], [*other, *running[1]], strict=True):
        assert mine.tolist() == theirs.tolist()
    x = x[:6].cpu()
    variance = x.transpose(0, 1).reshape(CHANNELS, -1).var(1)
    assert_same(running[0], [0.1 * x.mean([0, 2, 3]), 0.9 + 0.1 * variance], **CLOSE)


def test_statistics_need_not_be_tracked():
    x = batch().to(DEVICE)
    mean, invstd = torch.batch_norm_stats(x, EPS)
    counts = torch.full((1,), 210.0, device=DEVICE)
    got = torch.batch_norm_gather_stats_with_counts(x, mean[None], invstd[None], None, None, 0.1, EPS, counts)
    assert_same(got, [mean.cpu(), invstd.cpu()], **CLOSE)


def test_counts_beyond_what_float_can_count():
    means = torch.tensor([[0.0], [1.0]], device=DEVICE)
    counts = torch.tensor([2**25, 1], device=DEVICE)
    x = torch.zeros(2, 1, device=DEVICE)
    mean, _ = torch.batch_norm_gather_stats_with_counts(x, means, torch.ones_like(means), None, None, 0.1, 0.0, counts)
    assert mean.item() == pytest.approx(1 / (2**25 + 1), rel=1e-6)


def test_processes_that_had_nothing_change_no_statistics():
    x = torch.zeros(0, CHANNELS, device=DEVICE)
    running = [torch.full((CHANNELS,), 2.0, device=DEVICE) for _ in range(2)]
    nothing = torch.zeros(0, CHANNELS, device=DEVICE)
    counts = torch.zeros(0, device=DEVICE)
    mean, _ = torch.batch_norm_gather_stats_with_counts(x, nothing, nothing, *running, 0.1, EPS, counts)
    assert mean.tolist() == [0] * CHANNELS
    assert [each.tolist() for each in running] == [[2.0] * CHANNELS] * 2


def test_only_what_is_wanted_is_computed():
    x = batch().to(DEVICE)
    mean, invstd = torch.batch_norm_stats(x, EPS)
    weight = torch.ones(CHANNELS, device=DEVICE)
    every = torch.batch_norm_backward_reduce(x, x, mean, invstd, weight, True, True, True)
    for wanted in ([True, False, False], [False, True, False], [False, False, True]):
        some = torch.batch_norm_backward_reduce(x, x, mean, invstd, weight, *wanted)
        for is_wanted, one, full in zip([wanted[0], *wanted], some, every, strict=True):
            assert (one is not None) == is_wanted
            if is_wanted:
                assert one.tolist() == full.tolist()


def test_an_output_of_the_callers():
    x = batch().to(DEVICE)
    mean, invstd = torch.batch_norm_stats(x, EPS)
    out = torch.empty(0, device=DEVICE)
    expected = torch.batch_norm_elemt(x, None, None, mean, invstd, EPS)
    torch.ops.aten.batch_norm_elemt.out(x, None, None, mean, invstd, EPS, out=out)
    assert out.tolist() == expected.tolist()


def test_a_call_returns_before_its_kernel_ran(gate):
    x = batch().to(DEVICE)
    gate.close()
    mean, invstd = torch.batch_norm_stats(x, EPS)
    y = torch.batch_norm_elemt(x, None, None, mean, invstd, EPS)
    assert is_busy()
    gate.open()
    assert y.cpu().mean().item() == pytest.approx(0, abs=1e-4)


def test_mistakes_are_reported_on_the_calling_line():
    x = batch().to(DEVICE)
    mean, invstd = torch.batch_norm_stats(x, EPS)
    count = torch.ones(1, device=DEVICE)
    with pytest.raises(RuntimeError, match="aten::batch_norm_stats: expected an input with at least 2 dimensions"):
        torch.batch_norm_stats(x.flatten(), EPS)
    with pytest.raises(RuntimeError, match="expected an input of half, bfloat16, float or double, got Long"):
        torch.batch_norm_stats(x.long(), EPS)
    with pytest.raises(RuntimeError, match="expected mean to be a vector of 4 elements"):
        torch.batch_norm_elemt(x, None, None, mean[:3], invstd, EPS)
    with pytest.raises(RuntimeError, match="expected weight in Float or in the dtype of the input, Float, got Double"):
        torch.batch_norm_elemt(x, mean.double(), None, mean, invstd, EPS)
    with pytest.raises(RuntimeError, match="a row of 4 channels for each process, and a count for each"):
        torch.batch_norm_gather_stats_with_counts(x, mean[None], invstd[None], None, None, 0.1, EPS, count.expand(2))
    with pytest.raises(RuntimeError, match="expected a gradient like the input"):
        torch.batch_norm_backward_reduce(x[1:], x, mean, invstd, None, True, False, False)
    with pytest.raises(RuntimeError, match="openreg:1"):
        torch.batch_norm_elemt(x, None, None, mean.to("openreg:1"), invstd, EPS)
    torch.openreg.synchronize()
