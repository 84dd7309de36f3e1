# SPDX-License-Identifier: BSD-3-Clause
"""Operators that move elements by index give the CPU's results: select, take, put, fill, flip, x[...] = values."""

import pytest
import torch
from parity import DEVICE, assert_same, check, check_failure, is_busy

pytestmark = pytest.mark.no_fallback

X = torch.arange(12.0).view(3, 4)
IMAGE = torch.randn(2, 3, 4, 5)


def test_flip_and_roll():
    for x in (X, X.t(), IMAGE.contiguous(memory_format=torch.channels_last), torch.empty(0, 3), X[:, ::2]):
        check(lambda t: t.flip(0), x)
        check(lambda t: t.flip(0, 1), x)
        check(lambda t: t.roll(1), x)
        check(lambda t: t.roll((1, -1), (0, 1)), x)
    check(lambda t: t.rot90(), X.clone().requires_grad_())
    check(torch.fliplr, X)


def test_index_select():
    x = X.clone().requires_grad_()
    check(lambda t, i: t.index_select(1, i), x, torch.tensor([3, 0, 3]))
    check(lambda t, i: t.index_select(0, i), x.t(), torch.tensor([3, 0]))
    check(lambda t, i: t.index_select(0, i), X, torch.empty(0, dtype=torch.int64))
    check(lambda t, i: t.index_select(0, i), torch.tensor(3.0), torch.tensor([0]))


SLICES = {
    "rows": (torch.rand(5, 4), torch.rand(3, 4)),
    "slices of one element": (torch.rand(5, 1, 1), torch.rand(3, 1, 1)),
    "one value for a row": (torch.rand(5, 4), torch.rand(3, 1).expand(3, 4)),
}


@pytest.mark.filterwarnings("ignore:index_reduce.. is in beta")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", SLICES)
def test_products_in_reduced_types(name, dtype):
    """The CPU's kernel fails inside on all but rows: what is right, float32 says."""
    x, source = (tensor.to(dtype) for tensor in SLICES[name])
    index = torch.tensor([0, 1, 0])
    expected = x.float().index_reduce(0, index, source.float(), "prod")
    ours = x.to(DEVICE).index_reduce_(0, index.to(DEVICE), source.to(DEVICE), "prod")
    torch.testing.assert_close(ours.float().cpu(), expected, rtol=2e-2, atol=2e-2)


def test_take_and_put():
    x = X.clone().requires_grad_()
    check(lambda t, i: t.take(i), x, torch.tensor([[0, 11], [-1, 5]]))
    check(lambda t, i: t.t().take(i), x, torch.tensor(4))
    for accumulate in (False, True):
        check(
            lambda t, i, s, accumulate=accumulate: t.put(i, s, accumulate=accumulate),
            x,
            torch.tensor([1, -1]),
            torch.tensor([5.0, 7.0]).requires_grad_(),
        )


def test_index_fill():
    x, index = X.clone().requires_grad_(), torch.tensor([2, 0])
    check(lambda t, i: t.index_fill(0, i, 9.0), x, index)
    check(lambda t, i, v: t.index_fill(1, i, v), x, index, torch.tensor(2.5, requires_grad=True))
    check(lambda t, i: t.index_fill(1, i, torch.tensor(2.5)), X, index)
    check(lambda t, i: t.index_fill(0, i, 3), torch.tensor(1.0), torch.tensor([0]))


def test_the_gradient_of_unfold():
    check(lambda t: t.unfold(1, 2, 1), X.clone().requires_grad_())
    check(lambda t: t.unfold(0, 3, 2), torch.randn(5, 2, requires_grad=True))


ROWS, COLUMNS = torch.tensor([2, 0]), torch.tensor([1, 3])
ASSIGNMENTS = {
    "one index": ((ROWS,), torch.ones(4)),
    "two indices": ((ROWS, COLUMNS), torch.tensor([5.0, 6.0])),
    "the second dimension": ((None, COLUMNS), torch.ones(3, 1)),
    "indices that broadcast": ((ROWS[:, None], COLUMNS), torch.ones(2, 2)),
    "a number": ((ROWS, COLUMNS), torch.tensor(4.0)),
    "a mask": ((X > 5,), torch.arange(6.0)),
    "a mask and an index": ((torch.tensor([True, False, True]), COLUMNS), torch.tensor([1.0, 2.0])),
    "int32": ((ROWS.int(),), torch.ones(1)),
    "no element": ((ROWS[:0],), torch.ones(1)),
}


index_put, index_put_ = torch.ops.aten.index_put.default, torch.ops.aten.index_put_.default


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_index_put(name, accumulate):
    indices, values = ASSIGNMENTS[name]
    check(lambda t, i, v: index_put(t, i, v, accumulate), X, indices, values)
    check(lambda t, i, v: index_put_(t.t().contiguous().t(), i, v, accumulate), X, indices, values)


def test_index_put_between_dimensions():
    x = torch.zeros(2, 3, 4, 5)
    check(lambda t, i: index_put(t, (None, i, None, i), torch.ones((), device=t.device)), x, ROWS)
    check(lambda t, i, v: index_put(t, (None, i, i), v), x, ROWS, torch.randn(2, 2, 5))
    check(lambda t, i, v: index_put(t, (i % 2, None, i), v), x, ROWS, torch.randn(2, 3, 5))


def test_index_put_backward():
    x, values = X.clone().requires_grad_(), torch.randn(2, 4, requires_grad=True)
    check(lambda t, i, v: t.index_put((i,), v), x, ROWS, values)
    check(lambda t, i, v: t.index_put((i,), v, accumulate=True), x, ROWS, values)
    check(lambda t, i: t[i] * 2, x, torch.tensor([1, 1, 2]))


def test_assignment_in_python():
    for assign in (
        lambda t: t.__setitem__(0, 5),
        lambda t: t.__setitem__((slice(None), torch.tensor([1, 3])), 5.0),  # the index is on the host
        lambda t: t.__setitem__(t > 3, -1.0),
        lambda t: t.__setitem__((torch.tensor([0, 2], device=t.device), slice(1, 3)), t[:2, :2] * 2),
    ):
        theirs, mine = X.clone(), X.to(DEVICE)
        assign(theirs)
        assign(mine)
        assert_same(mine, theirs)


def test_an_assignment_under_a_mask_lets_the_host_go_on(gate):
    x, mask = X.to(DEVICE), (X > 5).to(DEVICE)
    gate.close()
    x[mask] = 0.0
    assert is_busy()
    gate.open()
    assert x.sum().item() == 15


@pytest.mark.parametrize(
    ("indices", "values"),
    [
        ((ROWS, ROWS, ROWS), X[0]),
        ((ROWS,), X[0, :3]),
        ((ROWS,), X[0].double()),
        ((ROWS[0], X > 0), X[0, 0]),
        (((X > 0)[:, :3],), X[0]),
        ((X,), X[0]),
        ((ROWS, torch.tensor([0, 1, 2])), X[0, 0]),
    ],
)
def test_mistakes_in_assignments_fail_on_the_calling_line(indices, values):
    check_failure(lambda x, there, source: x.index_put_(there, source), X.clone(), indices, values)


def test_an_index_out_of_range_fails_at_the_next_synchronization():
    x = X.to(DEVICE)
    x[torch.tensor([7], device=DEVICE)] = torch.ones(1, device=DEVICE)
    with pytest.raises(torch.AcceleratorError, match=r"_index_put_impl_.*out of bounds"):
        torch.openreg.synchronize()
    torch.openreg.reset_device(0)


def test_masked_scatter():
    x, source = X.clone().requires_grad_(), torch.randn(12, requires_grad=True)
    check(lambda t, m, s: t.masked_scatter(m, s), x, X > 4, source)
    check(lambda t, m, s: t.masked_scatter(m, s), x, X[:, :1] > 4, source)
    for mask, values in ((X, X), (X[:, :3] > 0, X)):
        check_failure(lambda t, m, s: t.masked_scatter_(m, s), X, mask, values)
    with pytest.raises(RuntimeError, match="Float and Double"):
        X.to(DEVICE).masked_scatter_((X > 0).to(DEVICE), X.double().to(DEVICE))


def test_a_number_that_does_not_fit_is_refused_on_the_calling_line():
    x = torch.zeros(3, dtype=torch.uint8, device=DEVICE)
    mask, index = x == 0, torch.tensor([1], device=DEVICE)
    for operation in (
        lambda: x.fill_(1000),
        lambda: x.masked_fill_(mask, 1000),
        lambda: x.masked_fill_(mask, torch.tensor(1000)),
        lambda: x.index_fill_(0, index, 1000),
    ):
        with pytest.raises(RuntimeError, match="without overflow"):
            operation()
    assert x.cpu().tolist() == [0, 0, 0]
