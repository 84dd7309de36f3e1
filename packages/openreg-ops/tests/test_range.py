# SPDX-License-Identifier: BSD-3-Clause
"""Sequences of numbers."""

import pytest
import torch
from parity import DEVICE, launches_of

pytestmark = pytest.mark.usefixtures("native")


@pytest.mark.parametrize(
    ("args", "dtype"),
    [
        ((5,), None),
        ((2, 9, 3), None),
        ((9, 2, -3), None),
        ((0.0, 1.0, 0.25), None),
        ((5,), torch.float64),
        ((5,), torch.uint8),
        ((1, 4), torch.bfloat16),
        ((0,), None),
        ((2**53, 2**53 + 3), torch.int64),
        ((100_000,), torch.int32),
    ],
    ids=str,
)
def test_arange(args, dtype):
    x = torch.arange(*args, dtype=dtype, device=DEVICE)
    expected = torch.arange(*args, dtype=dtype)
    assert x.dtype == expected.dtype
    assert x.cpu().equal(expected)


def test_out():
    out = torch.empty(0, device="openreg:1")
    assert torch.arange(4, out=out) is out
    assert out.cpu().tolist() == [0, 1, 2, 3]
    strided = torch.zeros(8, device=DEVICE)[::2]
    torch.arange(4, out=strided)
    assert strided.cpu().tolist() == [0, 1, 2, 3]
    with pytest.warns(UserWarning, match="was resized"):
        torch.arange(3, out=torch.empty(5, device=DEVICE))


@pytest.mark.parametrize("args", [(0, 5, 0), (0, 5, -1), (0, float("inf")), (0, float("nan"))])
def test_what_has_no_answer(args):
    with pytest.raises(RuntimeError):
        torch.arange(*args, device=DEVICE)
    torch.openreg.synchronize()


def test_one_launch():
    assert launches_of(lambda: torch.arange(5, device=DEVICE)) == (1, 0)
