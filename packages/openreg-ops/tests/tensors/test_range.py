# SPDX-License-Identifier: BSD-3-Clause
"""arange, linspace and similar factories give the CPU's values."""

import pytest
import torch
from parity import DEVICE

from openreg_testing.conformance.operators.outcome import attempt

pytestmark = pytest.mark.no_fallback


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
    with pytest.warns(UserWarning, match=r"elements 3\b"):
        torch.arange(3, out=torch.empty(5, device=DEVICE))


GUARD = 5
VIEWS = {
    "one dimension more": lambda memory: memory[GUARD:][:12].view(3, 4),
    "transposed": lambda memory: memory[GUARD:][:12].view(3, 4).t(),
    "every second element": lambda memory: memory[GUARD:][:24].view(3, 4, 2)[..., 1],
    "every second row": lambda memory: memory[GUARD:][:24].view(6, 4)[::2],
    "a part of every row": lambda memory: memory[:28].view(4, 7)[:, 2:5],
    "too small": lambda memory: memory[GUARD:][:6].view(2, 3),
    "too large": lambda memory: memory[GUARD:][:20].view(4, 5),
    "too large and sliced": lambda memory: memory[GUARD:][:20].view(10, 2)[:, 0].view(5, 2)[:, :1],
    "empty": lambda memory: memory[GUARD:][:0].view(0, 3),
}
MAKERS = {
    "arange": lambda out: torch.arange(12, out=out),
    "linspace": lambda out: torch.linspace(0, 11, 12, out=out),
    "logspace": lambda out: torch.logspace(0, 1, 12, out=out),
    "range": lambda out: torch.range(0, 11, out=out),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("maker", MAKERS)
def test_out_of_any_shape(maker, view):
    """Numbers, the memory around them, shape, strides and warnings are the CPU's."""

    def outcome_on(device):
        memory = torch.full((40,), 99.0, device=device)
        out = VIEWS[view](memory)
        made = attempt(lambda: MAKERS[maker](out) is out, device)
        return made.result, type(made.error), made.warnings, out.shape, out.stride(), memory.cpu().tolist()

    with torch.openreg.fallback_mode("allow"):
        ours = outcome_on(DEVICE)
    assert ours == outcome_on("cpu")


@pytest.mark.parametrize("args", [(0, 5, 0), (0, 5, -1), (0, float("inf")), (0, float("nan"))])
def test_what_has_no_answer(args):
    with pytest.raises(RuntimeError):
        torch.arange(*args, device=DEVICE)
    torch.openreg.synchronize()
