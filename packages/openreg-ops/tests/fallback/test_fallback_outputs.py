# SPDX-License-Identifier: BSD-3-Clause
"""The fallback handles operands that the CPU kernel writes: resized, overlapping, or on the CPU."""

import pytest
import torch
from parity import DEVICE, check


def test_an_operand_grows_where_the_cpus_does():
    check(lambda t, a, b: t.addbmm_(a, b), torch.ones(1), torch.rand(2, 3, 4), torch.rand(2, 4, 5))


def test_the_kernel_sees_operands_that_overlap():
    x = torch.arange(6.0, device=DEVICE)
    places = torch.empty((), dtype=torch.int64, device=DEVICE)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.kthvalue(x, 1, out=(x[:1].view(()), places))


def test_an_output_on_the_cpu_is_refused(custom):
    largest = custom("largest(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", lambda x, *, out: out.copy_(x.max()))
    x = torch.tensor([1.0, 3.0], device=DEVICE)
    assert largest(x, out=torch.empty((), device=DEVICE)).item() == 3
    with pytest.raises(RuntimeError, match="same device"):
        largest(x, out=torch.empty(()))  # as an input, a number on the CPU would do
