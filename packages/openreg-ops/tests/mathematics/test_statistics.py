# SPDX-License-Identifier: BSD-3-Clause
"""Unstructured reductions, scans, histograms, searches and inner products give the CPU's results."""

import pytest
import torch
from launch_observer import observe
from parity import DEVICE, check, check_failure, tensors_in

pytestmark = pytest.mark.no_fallback

X = torch.randperm(24).float().view(2, 3, 4)  # no two are equal, so that the place of an extremum is unique
LAYOUTS = [X, X.transpose(0, 2), X[:, ::2]]


@pytest.mark.parametrize("x", LAYOUTS, ids=["contiguous", "transposed", "with gaps"])
@pytest.mark.parametrize(
    "operation",
    [
        torch.max,
        torch.min,
        torch.median,
        torch.nanmedian,
        torch.prod,
        torch.nansum,
        torch.std,
        torch.var_mean,
        torch.std_mean,
        torch.count_nonzero,
        lambda t: t.median(1),
        lambda t: t.nanmedian(-1, keepdim=True),
        lambda t: t.kthvalue(2, 1),
        lambda t: t.mode(1, keepdim=True),
        lambda t: t.nansum((0, 2), keepdim=True),
        lambda t: t.var((0, -1), correction=0),
        lambda t: torch.var_mean(t, 1, keepdim=True),
        lambda t: t.count_nonzero((0, 1)),
        lambda t: t.cummax(1),
        lambda t: t.cummin(0),
        lambda t: t.logcumsumexp(1),
        lambda t: t[0].trace(),
    ],
)
def test_reductions_and_scans(operation, x):
    check(operation, x)
    results = operation(x.clone().requires_grad_())
    if any(tensor.requires_grad for tensor in tensors_in(results)):
        check(operation, (x + 1).requires_grad_())


def test_dtypes():
    integers = torch.tensor([[3, 0, 2], [1, 0, 0]])
    check(torch.prod, integers)
    check(lambda t: torch.prod(t, dtype=torch.float64), integers)
    check(torch.nansum, integers.int())
    check(torch.prod, integers > 0)
    check(torch.max, integers > 0)
    check(torch.median, integers)
    check(lambda t: t.trace(), integers)
    z = torch.randn(3, 4, dtype=torch.complex64)
    for operation in (torch.prod, torch.var, torch.std_mean, lambda t: t.logcumsumexp(0), torch.count_nonzero):
        check(operation, z)
    check(torch.prod, torch.empty(0))
    check(torch.median, torch.empty(0))
    check(lambda t: t.kthvalue(1), torch.tensor(3.0))
    check(lambda t: t.kthvalue(1), torch.tensor(3.0 + 1.0j))  # nothing is ordered


@pytest.mark.parametrize(
    "operation",
    [
        lambda t: t[:0].max(),
        lambda t: t[:0].median(0),
        lambda t: t.kthvalue(9),
        lambda t: t.median(5),
        lambda t: t.long().var(),
        lambda t: t.trace(),
        lambda t: t.to(torch.complex64).median(),
        lambda t: t.to(torch.complex64).cummax(0),
        lambda t: t.long().logcumsumexp(0),
        lambda t: torch.dot(t[0, 0], t[0, 0].double()),
        lambda t: torch.dot(t[0, 0], t[0, 0, :2]),
        lambda t: torch.vdot(t, t),
        lambda t: torch.searchsorted(t, t[0]),
        lambda t: torch.searchsorted(t[0, 0], t, side="up"),
        lambda t: torch.bucketize(t, t),
        lambda t: torch.histc(t, 0),
        lambda t: torch.histc(t, 3, 2, 1),
        lambda t: torch.histogram(t, 3, range=(1, 0)),
        lambda t: torch.histogramdd(t, [2, 2]),
        lambda t: torch.segment_reduce(t, "sum"),
    ],
)
def test_mistakes_fail_on_the_calling_line_as_on_the_cpu(operation):
    check_failure(operation, X)


def test_dtypes_that_only_a_gpu_takes():
    integers = torch.tensor([3, 0, 2, 2], device=DEVICE)
    assert torch.histc(integers, 4).cpu().tolist() == [1, 0, 2, 1]
    assert torch.histc(integers, 3, 0, 6).cpu().tolist() == [1, 3, 0]
    assert torch.histc(integers, 2).dtype == torch.int64
    assert torch.eye(3, dtype=torch.bool, device=DEVICE).trace().item() == 3
    z = torch.tensor([1 + 2j, complex("nan"), 3j], device=DEVICE)
    assert torch.nansum(z).item() == 1 + 5j


def test_too_few_degrees_of_freedom_are_warned_of_on_the_calling_line():
    with pytest.warns(UserWarning, match=r"var\(\)") as caught:
        assert torch.ones(1, device=DEVICE).var().isnan().item()
    assert caught[0].filename == __file__


def test_inner_products():
    x, y = torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)
    check(torch.dot, x, y)
    check(torch.inner, x, y)
    z, w = torch.randn(5, dtype=torch.complex64), torch.randn(5, dtype=torch.complex64)
    for operation in (torch.dot, torch.vdot):
        check(operation, z, w)
        check(lambda a, b, operation=operation: operation(a.conj(), b), z, w)
        check(lambda a, b, operation=operation: operation(a, b.conj()), z, w)
        check(lambda a, b, operation=operation: operation(a.conj(), b.conj()), z, w)
    check(torch.dot, torch.arange(3), torch.arange(3))
    check(torch.dot, torch.empty(0), torch.empty(0))
    check(lambda a, b: torch.dot(a[::2], b[1:4]), x, y)


def test_searching():
    edges = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    for options in ({}, {"right": True}, {"out_int32": True}):
        check(lambda t, e, options=options: torch.bucketize(t, e, **options), X, edges)
        check(lambda t, e, options=options: torch.searchsorted(e, t, **options), X / 12 - 1, edges)
        check(lambda e, options=options: torch.searchsorted(e, 0.25, **options), edges)
        check(lambda e, options=options: torch.bucketize(0.25, e, **options), edges)
    check(lambda t, e: torch.searchsorted(e, t, side="right"), X.long(), edges)
    order = torch.tensor([2, 0, 1])
    check(lambda t, e, o: torch.searchsorted(e, t, sorter=o), X, torch.tensor([1.0, 2.0, 0.0]), order)
    check(lambda t, e: torch.searchsorted(e, t), X, X.sort(-1).values)
    check(lambda t: torch.isin(2, t), torch.tensor([1, 2]))
    check(lambda t: torch.isin(2, t, invert=True), torch.tensor([1, 3]))


def test_histograms():
    check(torch.histc, X)
    check(lambda t: torch.histc(t, 4, 0, 10), X.transpose(0, 1))
    check(lambda t: torch.histogram(t, 3, range=(0.0, 9.0)), X)
    check(lambda t, w: torch.histogram(t, 3, weight=w, density=True), X, torch.rand(2, 3, 4))
    check(lambda t, e: torch.histogram(t, e), X, torch.tensor([0.0, 3.0, 7.0]))
    points = torch.rand(10, 2)
    check(lambda t: torch.histogramdd(t, [2, 3]), points)
    check(lambda t, a, b: torch.histogramdd(t, [a, b]), points, torch.tensor([0.0, 0.5, 1]), torch.tensor([0.0, 1]))


def test_the_weight_of_a_histogram_is_not_copied_to_be_checked():
    values, weight = torch.rand(2, 2, device=DEVICE), torch.rand(2, 4, device=DEVICE)[:, :2]
    with observe() as tasks:
        torch.histogram(values, 3, range=(0.0, 1.0), weight=weight)
    assert [task.name for task in tasks] == ["aten::histogram"]


@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduction):
    x = torch.randn(6, 3, requires_grad=True)
    lengths, offsets = torch.tensor([2, 0, 4]), torch.tensor([0, 2, 6])
    check(lambda t, n: torch.segment_reduce(t, reduction, lengths=n, initial=1.0), x, lengths)
    check(lambda t, n: torch.segment_reduce(t, reduction, offsets=n), x, offsets)


def test_segments_that_do_not_add_up_fail_at_the_call_or_unsafely_later():
    data, lengths = torch.ones(3, device=DEVICE), torch.tensor([1, 1], device=DEVICE)
    with pytest.raises(RuntimeError, match="segment_reduce"):
        torch.segment_reduce(data, "sum", lengths=lengths)
    assert torch.segment_reduce(data, "sum", lengths=lengths, unsafe=True).tolist() == [1, 1]
