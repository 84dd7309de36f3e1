# SPDX-License-Identifier: BSD-3-Clause
"""Element-wise operators whose out= overload is written by hand, and those built on them, give the CPU's results."""

import pytest
import torch
from parity import DEVICE, assert_same, check, move_all

pytestmark = pytest.mark.no_fallback

VALUES = [
    torch.tensor([-2, 0, 3], dtype=torch.int64),
    torch.tensor([True, False, True]),
    torch.tensor([-2.5, 0.0, float("nan"), float("inf")]),
    torch.tensor([1 - 2j, complex("nan"), 3j]),
    torch.tensor([-1.5, 2.5], dtype=torch.bfloat16),
]


@pytest.mark.parametrize("x", VALUES, ids=lambda t: str(t.dtype))
def test_functions_of_one_operand(x):
    check(torch.isnan, x)
    check(torch.logical_not, x)
    check(torch.isfinite, x)
    if x.dtype != torch.bool:
        check(torch.angle, x)
        check(torch.abs, x)
        check(torch.nan_to_num, x)
    if not x.is_complex():
        check(torch.relu, x) if x.dtype != torch.bool else None


@pytest.mark.parametrize("operation", ["logical_and", "logical_or", "logical_xor"])
def test_logic(operation):
    x, y = torch.tensor([[0.0, 1.0], [2.0, 0.0]]), torch.tensor([0, 3])
    check(getattr(torch, operation), x, y)
    for left, right in ((x, y), (x, x[:1]), (y.bool(), x[0].bool())):
        theirs, mine = move_all((left, right), "cpu"), move_all((left, right), DEVICE)
        expected = getattr(theirs[0], f"{operation}_")(theirs[1])
        assert_same(getattr(mine[0], f"{operation}_")(mine[1]), expected)
    with pytest.raises(RuntimeError, match="output with shape"):
        getattr(y.to(DEVICE), f"{operation}_")(x.to(DEVICE))


def test_in_place_forms():
    x = torch.tensor([-2.5, 0.0, 1.5])
    check(lambda t: t.abs_(), x)
    check(lambda t: t.logical_not_(), x)
    check(lambda t: t.nan_to_num_(1.0), x / 0)
    check(lambda t: t.relu_(), x)


def test_where():
    x, y = torch.randn(3, 4), torch.randn(4)
    check(torch.where, x > 0, x, y)
    check(torch.where, x > 0, x.double(), y)
    check(torch.where, x > 0, x, 1.5)
    check(torch.where, x > 0, 2, 1)
    check(torch.where, torch.tensor(True), x, y)
    out = torch.empty(0, device=DEVICE)
    xs, ys = x.to(DEVICE), y.to(DEVICE)
    assert torch.where(xs > 0, xs, ys, out=out) is out
    torch.testing.assert_close(out.cpu(), torch.where(x > 0, x, y))
    with pytest.raises(RuntimeError, match=r"dtype|type"):
        torch.where(xs > 0, xs, ys, out=torch.empty(3, 4, dtype=torch.int32, device=DEVICE))
    with pytest.raises(RuntimeError, match="boolean"):
        torch.where(xs, xs, ys)


def test_where_warns_of_a_condition_of_bytes_on_the_calling_line(run_python):
    """Once, as on the CPU, whose own warning is not used up."""
    code = """
import torch, warnings
import openreg_ops
for device in ("openreg", "cpu"):
    condition, x = torch.tensor([2, 0], dtype=torch.uint8, device=device), torch.ones(2, device=device)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = torch.where(condition, x, -x)
        print(len(caught), *result.tolist())
"""
    result = run_python(code)
    assert result.stdout.splitlines() == ["1 1.0 -1.0", "0 1.0 -1.0"] * 2, result.stderr


def test_where_takes_numbers_from_the_host():
    mask = torch.tensor([True, False], device=DEVICE)
    assert torch.where(mask, torch.tensor(1.0), torch.tensor(2.0)).cpu().tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="same device"):
        torch.where(torch.tensor([True, False]), torch.ones(2, device=DEVICE), 0.0)


def test_gradients():
    x = torch.tensor([-1.5, 0.5, 2.0], requires_grad=True)
    check(torch.abs, x)
    check(torch.relu, x)
    check(lambda t: torch.where(t > 0, t * 2, t * 3), x)
    check(torch.nan_to_num, x)
