# SPDX-License-Identifier: BSD-3-Clause
"""Autocast keeps what no rule covers and refuses binary cross entropy. The rules themselves have tests of their own.

Creating tensors on the device takes openreg-ops, which is not installed here. PyTorch's fake
tensors have a device, types and dispatch keys but no memory, and so pass through the same rules.
"""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

import openreg_amp  # noqa: F401


@pytest.fixture(autouse=True)
def fake():
    with FakeTensorMode():
        yield


def matrix(dtype=torch.float32, device="openreg"):
    return torch.empty(4, 4, dtype=dtype, device=device)


def test_a_type_that_the_caller_names_is_kept():
    with torch.autocast("openreg"):
        assert torch.sum(matrix(), dtype=torch.float16).dtype is torch.float16


def test_mixed_arguments_take_the_widest_type():
    with torch.autocast("openreg"):
        result = torch.addcmul(matrix(torch.float32), matrix(torch.float16), matrix(torch.float16))
        assert result.dtype is torch.float32
        result = torch.atan2(matrix(torch.float16), matrix(torch.float16))
        assert result.dtype is torch.float16


def test_an_operator_without_a_rule_keeps_its_types():
    with torch.autocast("openreg"):
        for dtype in (torch.float16, torch.float32):
            assert (matrix(dtype) + matrix(dtype)).dtype is dtype
            assert torch.relu(matrix(dtype)).dtype is dtype


def test_float64_and_integers_are_left_alone():
    with torch.autocast("openreg"):
        assert (matrix(torch.float64) @ matrix(torch.float64)).dtype is torch.float64
        assert torch.sum(matrix(torch.int32)).dtype is torch.int64


def test_tensors_elsewhere_are_left_alone():
    with torch.autocast("openreg"):
        assert (matrix(device="cpu") @ matrix(device="cpu")).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (matrix() @ matrix()).dtype is torch.float32
        assert (matrix(device="cpu") @ matrix(device="cpu")).dtype is torch.bfloat16


def test_nothing_is_cast_outside_the_context():
    with torch.autocast("openreg"):
        pass
    assert (matrix() @ matrix()).dtype is torch.float32
    with torch.autocast("openreg", enabled=False):
        assert (matrix() @ matrix()).dtype is torch.float32


def test_binary_cross_entropy_is_refused_with_a_way_out():
    probability, target = torch.sigmoid(matrix()), matrix()
    with torch.autocast("openreg"), pytest.raises(RuntimeError) as raised:
        functional.binary_cross_entropy(probability, target)
    for part in ("binary_cross_entropy_with_logits", "openreg device", "enabled=False"):
        assert part in str(raised.value)
    with torch.autocast("openreg"):
        loss = functional.binary_cross_entropy_with_logits(matrix(torch.float16), target)
        assert loss.dtype is torch.float32
        with torch.autocast("openreg", enabled=False):
            assert functional.binary_cross_entropy(probability, target).dtype is torch.float32


def test_the_gradient_of_binary_cross_entropy_is_not_refused():
    probability = torch.empty(4, device="openreg", requires_grad=True)
    loss = functional.binary_cross_entropy(probability, torch.empty(4, device="openreg"))
    with torch.autocast("openreg"):
        (gradient,) = torch.autograd.grad(loss, probability)
    assert gradient.dtype is torch.float32


def test_all_other_operators_fall_through():
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "AutocastPrivateUse1")
    table = torch._C._dispatch_dump_table("aten::add.Tensor")
    (line,) = (line for line in table.splitlines() if line.startswith("AutocastPrivateUse1:"))
    assert "fallthrough" in line
