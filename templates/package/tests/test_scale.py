# SPDX-License-Identifier: BSD-3-Clause
"""The operator and its meta function agree with the CPU, and wrong calls are refused."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import openreg_example  # noqa: F401  (brings the operator)

pytestmark = pytest.mark.every_subset


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_values_are_those_of_the_cpu(dtype):
    x = torch.linspace(-2, 2, 12, dtype=dtype).reshape(3, 4)
    result = torch.openreg.example_scale(x.to("openreg"), 0.5)
    assert result.device == torch.device("openreg:0")
    torch.testing.assert_close(result.cpu(), x * 0.5)


def test_operands_of_any_layout():
    x = torch.arange(12.0).reshape(3, 4)
    result = torch.openreg.example_scale(x.to("openreg").t(), 3)
    torch.testing.assert_close(result.cpu(), x.t() * 3)
    assert result.is_contiguous()
    assert torch.openreg.example_scale(torch.empty(0, 2, device="openreg"), 3).shape == (0, 2)


def test_the_result_is_on_the_device_of_the_operand():
    x = torch.ones(3, device="openreg:1")
    result = torch.openreg.example_scale(x, 2)
    assert (result.device.index, result.cpu().tolist()) == (1, [2, 2, 2])
    assert torch.openreg.current_device() == 0


def test_shape_and_dtype_are_known_without_values():
    with FakeTensorMode():
        x = torch.empty(3, 4, dtype=torch.float16, device="openreg")
        result = torch.openreg.example_scale(x, 2)
    assert (result.shape, result.dtype, result.device.type) == ((3, 4), torch.float16, "openreg")


def test_pytorchs_checks_of_custom_operators():
    operator = torch.ops.openreg.example_scale.default
    torch.library.opcheck(operator, (torch.ones(3, device="openreg"), 2.0))


def test_integers_are_refused_with_a_way_out():
    message = r"openreg::example_scale: expected a floating-point .*Long on openreg:0.*float"
    with pytest.raises(RuntimeError, match=message):
        torch.openreg.example_scale(torch.arange(3, device="openreg"), 2)


def test_there_is_no_derivative():
    x = torch.ones(3, device="openreg", requires_grad=True)
    with pytest.raises(RuntimeError, match="example_scale"):
        torch.openreg.example_scale(x, 2).sum().backward()
