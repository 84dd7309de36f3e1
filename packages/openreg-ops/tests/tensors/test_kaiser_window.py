# SPDX-License-Identifier: BSD-3-Clause
"""torch.kaiser_window(), which calls a stub of the device, gives the CPU's values asynchronously."""

import pytest
import torch
from parity import DEVICE, is_busy

pytestmark = pytest.mark.no_fallback


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 1000])
def test_the_window_is_that_of_the_cpu(length, dtype):
    ours = torch.kaiser_window(length, dtype=dtype, device=DEVICE)
    assert torch.equal(ours.cpu(), torch.kaiser_window(length, dtype=dtype))


def test_arguments():
    for options in ({"periodic": False}, {"periodic": True, "beta": 5.0}):
        assert torch.equal(torch.kaiser_window(9, device=DEVICE, **options).cpu(), torch.kaiser_window(9, **options))


def test_the_launch_returns_first(gate):
    gate.close()
    torch.kaiser_window(5, device=DEVICE)
    assert is_busy()
