# SPDX-License-Identifier: BSD-3-Clause
"""Operators whose output shape depends on data are right, wait for the device once, and copy no more than needed."""

import warnings

import pytest
import torch
from parity import DEVICE, assert_same, check

pytestmark = pytest.mark.no_fallback

SPARSE = torch.tensor([[0.0, 1.0, 0.0, -2.0], [3.0, 0.0, 0.0, 0.0]])
REPEATED = torch.tensor([[2, 1, 2], [3, 1, 2], [2, 1, 2]])


@pytest.fixture
def waits():
    """Gives a function that counts how often an operation makes the host wait."""

    def count(operation):
        torch.openreg.synchronize()
        torch.openreg.set_sync_debug_mode("warn")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            operation()
        torch.openreg.set_sync_debug_mode("default")
        return sum("the host waits" in str(warning.message) for warning in caught)

    yield count
    torch.openreg.set_sync_debug_mode("default")


ONE_WAIT = {
    "nonzero": lambda x, n: x.nonzero(),
    "nonzero as a tuple": lambda x, n: x.nonzero(as_tuple=True),
    "argwhere": lambda x, n: torch.argwhere(x),
    "masked_select": lambda x, n: x.masked_select(x > 0),
    "boolean index": lambda x, n: x[x > 0],
    "one-sided where": lambda x, n: torch.where(x > 0),
    "unique": lambda x, n: torch.unique(n, return_inverse=True, return_counts=True),
    "unique of rows": lambda x, n: torch.unique(n, dim=0),
    "unique_consecutive": lambda x, n: torch.unique_consecutive(n, return_counts=True),
    "bincount": lambda x, n: torch.bincount(n[0]),
    "repeat_interleave": lambda x, n: x.repeat_interleave(n[0, :2], dim=0),
    "equal": lambda x, n: torch.equal(x, x + 0),
}


@pytest.mark.parametrize("name", ONE_WAIT)
def test_the_host_waits_once(name, waits):
    x, numbers = SPARSE.to(DEVICE), REPEATED.to(DEVICE)
    assert waits(lambda: ONE_WAIT[name](x, numbers)) == 1


NO_WAIT = {
    "a boolean index on the left": lambda x, n: x.__setitem__(x > 1, 7.0),
    "index_put_ under a mask": lambda x, n: x.index_put_((x > 1,), torch.zeros(1, device=DEVICE), accumulate=True),
    "nonzero_static": lambda x, n: torch.nonzero_static(x, size=4),
    "a size that the caller knows": lambda x, n: torch.repeat_interleave(n[0], output_size=5),
    "nothing to count": lambda x, n: (x[:0].nonzero(), x[:0].masked_select(x[:0] > 0)),
    "other shapes are never equal": lambda x, n: torch.equal(x, n),
}


@pytest.mark.parametrize("name", NO_WAIT)
def test_the_host_does_not_wait(name, waits):
    x, numbers = SPARSE.to(DEVICE), REPEATED.to(DEVICE)
    assert waits(lambda: NO_WAIT[name](x, numbers)) == 0


def test_nonzero():
    for x in (SPARSE, SPARSE.t(), SPARSE[:, ::2], SPARSE > 0, SPARSE.to(torch.complex64), torch.tensor(2.0)):
        check(torch.nonzero, x)
    check(torch.nonzero, torch.zeros(2, 0))
    check(lambda t: t.nonzero(as_tuple=True), SPARSE)
    check(lambda t: torch.nonzero_static(t, size=2), SPARSE)


def test_masked_select():
    x = torch.randn(3, 4, requires_grad=True)
    check(lambda t: t.masked_select(t > 0), x)
    check(lambda t: t.masked_select(t[:1] > 0), x)
    check(lambda t: t[t > 0] * 2, x)
    check(lambda t: t.t()[1:].masked_select(t.t()[1:] < 0), x)
    out = torch.empty(1, device=DEVICE)
    with pytest.warns(UserWarning, match="was resized"):
        torch.masked_select(SPARSE.to(DEVICE), SPARSE.to(DEVICE) > 0, out=out)
    assert out.cpu().tolist() == [1, 3]


def test_unique():
    for options in ({}, {"return_inverse": True}, {"return_counts": True}, {"sorted": False}):
        check(lambda t, options=options: torch.unique(t, **options), REPEATED)
    check(lambda t: torch.unique(t, dim=0, return_inverse=True, return_counts=True), REPEATED)
    check(lambda t: torch.unique(t, dim=1), REPEATED.t())
    check(lambda t: torch.unique_consecutive(t, return_inverse=True, return_counts=True), REPEATED.view(-1))
    check(lambda t: torch.unique_consecutive(t, dim=1), REPEATED)
    check(lambda t: torch.ops.aten.unique_dim_consecutive(t, 1, True, True), REPEATED)
    check(torch.unique, torch.empty(0))


def test_counting_and_repeating():
    check(torch.bincount, torch.tensor([1, 1, 3]))
    check(lambda t: torch.bincount(t, minlength=6), torch.tensor([1, 1, 3]))
    check(torch.bincount, torch.tensor([1, 1, 3]), torch.tensor([0.5, 1.5, 2.0]))
    check(torch.bincount, torch.empty(0, dtype=torch.int64))
    check(torch.repeat_interleave, torch.tensor([2, 0, 3]))
    check(lambda t: torch.repeat_interleave(t, output_size=5), torch.tensor([2, 0, 3]))
    check(lambda x, t: x.repeat_interleave(t, dim=1), torch.randn(2, 3, requires_grad=True), torch.tensor([2, 0, 3]))


def test_equal():
    x = SPARSE.to(DEVICE)
    assert torch.equal(x, x.clone())
    assert torch.equal(x.t(), x.t().contiguous())
    assert not torch.equal(x, x + 1)
    assert not torch.equal(x, x[:1])
    assert torch.equal(x[:0], x[:0].clone())
    with pytest.raises(RuntimeError, match="same device"):
        torch.equal(x, SPARSE)


def test_mistakes_in_the_data_fail_on_the_calling_line_and_leave_the_device_healthy():
    operations = {
        "non-negative": lambda: torch.bincount(torch.tensor([-1], device=DEVICE)),
        "repeats can not be negative": lambda: torch.repeat_interleave(torch.tensor([-1], device=DEVICE)),
        "0 sized dimensions": lambda: torch.unique(torch.zeros(3, 0, device=DEVICE), dim=0),
        "expected BoolTensor": lambda: SPARSE.to(DEVICE).masked_select(SPARSE.to(DEVICE)),
    }
    for message, operation in operations.items():
        with pytest.raises(RuntimeError, match=message):
            operation()
    assert_same(SPARSE.to(DEVICE).nonzero(), SPARSE.nonzero())


@pytest.mark.parametrize("name", ["nonzero", "masked_select", "unique", "equal"])
def test_what_waits_cannot_be_captured(name):
    x, numbers = SPARSE.to(DEVICE), REPEATED.to(DEVICE)
    with (
        pytest.raises(RuntimeError, match="cannot be captured"),
        torch.openreg.graph(torch.openreg.Graph()),
    ):
        ONE_WAIT[name](x, numbers)
    assert x.nonzero().shape == (3, 2)
