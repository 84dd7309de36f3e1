# SPDX-License-Identifier: BSD-3-Clause
"""Kernels run on zeros before their first launch, so that the call refuses wrong operands; this run has no side effect.

The sweep over all operators and arguments is the check `arguments` of the conformance kit.
"""

from __future__ import annotations

import pytest
import torch
from _platform import IS_LINUX
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = "openreg"
functional = torch.nn.functional


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype, device=DEVICE)


WRONG = {
    "a bias of another size": lambda: torch.addmm(ones(3), ones(2, 4), ones(4, 5)),
    "a weight of another dtype": lambda: functional.layer_norm(ones(2, 4), (4,), ones(4), ones(4, dtype=torch.float64)),
    "a target of another dtype": lambda: functional.binary_cross_entropy(ones(2), ones(2, dtype=torch.float64)),
    "an index of another dtype": lambda: torch.index_fill(ones(4), 0, torch.zeros(1, device=DEVICE).int(), 1.0),
    "points of another dimension": lambda: torch.cdist(ones(2, 3), ones(2, 4)),
    "a kernel without width": lambda: functional.conv1d(ones(1, 2, 5), ones(3, 2, 0)),
    "a transform of no points": lambda: torch.fft.fft(ones(3, 0)),
    "reflectors of another size": lambda: torch.ormqr(ones(3, 3), ones(5), ones(3, 2)),
    "running statistics of another size": lambda: functional.batch_norm(ones(2, 3), ones(2), ones(3), training=True),
    "gradients that do not fit": lambda: torch.ops.aten.native_dropout_backward(ones(2), ones(3) > 0, 2.0),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_what_the_host_can_see_is_refused_by_the_call(call):
    with pytest.raises((RuntimeError, IndexError)):
        call()
    torch.openreg.synchronize()  # raises if the device was lost


def test_a_first_launch_does_not_wait(gate):
    """`renorm` is no operator whose checks are known to be complete."""
    x = torch.rand(3, 7, device=DEVICE)
    expected = x.cpu().renorm(2, 0, 0.5)
    gate.close()
    result = x.renorm(2, 0, 0.5)
    assert not torch.accelerator.current_stream().query()
    gate.open()
    torch.testing.assert_close(result.cpu(), expected)


def test_a_kernel_that_the_zeros_of_a_trial_mislead_has_the_last_word():
    """Lengths of zero do not sum up to the size of the axis; those that are given do."""
    data = torch.rand(3, device=DEVICE)
    for _ in range(2):
        sums = torch.segment_reduce(data, "sum", lengths=torch.tensor([1, 2], device=DEVICE))
        torch.testing.assert_close(sums.cpu(), torch.stack([data[0], data[1:].sum()]).cpu())
    with pytest.raises(RuntimeError):
        torch.segment_reduce(data, "sum", lengths=torch.tensor([1, 5, 1], device=DEVICE))
    torch.openreg.synchronize()


class Calls(TorchDispatchMode):
    """The operators that a dispatch mode sees."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.name())
        return function(*args, **(kwargs or {}))


def test_a_trial_is_seen_by_no_mode_and_no_profiler():
    x = torch.rand(5, 11, device=DEVICE)
    with Calls() as first:
        torch.renorm(x, 2, 0, 0.5)
    with Calls() as second:
        torch.renorm(x, 2, 0, 0.5)
    assert first.names == second.names
    names = []
    for _ in range(2):
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            torch.renorm(x[:, 1:], 2, 0, 0.25)
        names.append([event.name for event in recorded.events() if event.name.startswith("aten::")])
    assert names[0] == names[1]


def test_a_trial_leaves_the_calling_threads_modes_as_they_were():
    x = torch.rand(5, 13, device=DEVICE)
    with torch.inference_mode():
        torch.renorm(x, 2, 0, 0.5)
        assert torch.is_inference_mode_enabled()
    threads = torch.get_num_threads()
    torch.renorm(x, 2, 0, 0.75)
    assert (torch.is_inference_mode_enabled(), torch.is_grad_enabled()) == (False, True)
    assert torch.get_num_threads() == threads


def test_a_trial_touches_neither_operands_nor_statistics():
    mean, variance = torch.zeros(3, device=DEVICE), torch.ones(3, device=DEVICE)
    x = torch.rand(4, 3, device=DEVICE)
    functional.batch_norm(x, mean, variance, training=True, momentum=1.0)
    torch.testing.assert_close(mean.cpu(), x.cpu().mean(0))
    y = torch.rand(4, 3, device=DEVICE)
    expected = y.cpu().renorm_(2, 0, 0.5)
    torch.testing.assert_close(y.renorm_(2, 0, 0.5).cpu(), expected)


THREADS = """
import os
import torch, openreg_ops

torch.set_num_threads(2)
x = torch.rand(4, 8, 256, 64, device="openreg", requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(x, x, x).sum().backward()
for task in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{task}/comm") as file:
        print(file.read().strip())
"""


@pytest.mark.skipif(not IS_LINUX, reason="the names of threads are read from Linux's /proc")
def test_a_trial_leaves_no_openmp_threads(run_python):
    """`torch.set_num_threads()` sets the number of MKL's threads, too, for which the limit of OpenMP does not count."""
    result = run_python(THREADS)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split().count("pt_autograd_0") == 1  # those of OpenMP inherit the name of their creator
