# SPDX-License-Identifier: BSD-3-Clause
"""CPU kernels that allocate their result allocate it in device memory, without temporary or copy."""

import pytest
import torch
from _platform import IS_LINUX
from parity import DEVICE, check
from torch.nn import functional

pytestmark = pytest.mark.no_fallback

PEAK = r"""
import pathlib, re, torch, openreg_ops
from torch.nn import functional
def peak():  # of this program; that of getrusage() goes back to the process that started it
    torch.openreg.synchronize()
    return int(re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024
x = torch.ones(16, 64, 128, 128, device="openreg")
before = peak()
y = {call}
print((peak() - before) / y.nbytes)
"""
CALLS = {
    "layer norm": "functional.layer_norm(x, (128, 128))",
    "group norm": "functional.group_norm(x, 4)",
    "attention": "functional.scaled_dot_product_attention(x, x, x)",
    "batch norm": "functional.batch_norm(x, None, None, training=True)",
}


@pytest.mark.skipif(not IS_LINUX, reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("name", CALLS)
def test_a_result_needs_memory_once(name, run_python):
    result = run_python(PEAK.format(call=CALLS[name]))
    assert result.returncode == 0, result.stderr
    assert 0.9 < float(result.stdout) < 1.5


def test_a_temporary_of_the_results_size_takes_no_harm():
    # The kernel first makes its operand contiguous, in the memory that is offered for the result.
    x = torch.randn(2, 3, 6, 6).transpose(2, 3).requires_grad_()
    check(
        functional.conv2d,
        x,
        torch.randn(3, 3, 3, 3, requires_grad=True),
        padding=1,
        tolerance={"rtol": 1e-4, "atol": 1e-5},
    )


def test_kernels_on_other_threads_are_left_alone():
    x = torch.ones(64, 64, device=DEVICE)
    results = []
    for _ in range(50):
        functional.layer_norm(x, (64,))
        results.append(torch.empty(64, 64).fill_(3))  # of the size of a result in the making
    torch.openreg.synchronize()
    assert all(result.eq(3).all() for result in results)
