# SPDX-License-Identifier: BSD-3-Clause
"""What each operator's arguments become while autocast is enabled.

Creating tensors on the device takes openreg-ops, which is not installed here. PyTorch's fake
tensors have a device, types and dispatch keys but no memory, and so pass through the same rules.
"""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

import openreg_amp  # noqa: F401

LOWER = (torch.float16, torch.bfloat16)


@pytest.fixture(autouse=True)
def fake():
    with FakeTensorMode():
        yield


def matrix(dtype=torch.float32, device="openreg"):
    return torch.empty(4, 4, dtype=dtype, device=device)


def image():
    return torch.empty(2, 3, 8, 8, device="openreg")


def weights():
    return torch.empty(5, 3, 3, 3, device="openreg")


PRODUCTS = {
    "mm": lambda: matrix() @ matrix(),
    "addmm": lambda: torch.addmm(matrix(), matrix(), matrix()),
    "bmm": lambda: torch.bmm(image()[0], image()[0]),
    "linear": lambda: functional.linear(matrix(), matrix()),
    "conv2d": lambda: functional.conv2d(image(), weights()),
    "einsum": lambda: torch.einsum("ij,jk->ik", matrix(), matrix()),
}

PRECISE = {
    "asin": torch.asin,
    "exp": torch.exp,
    "log": torch.log,
    "pow.Tensor_Scalar": lambda x: x**2,
    "layer_norm": lambda x: functional.layer_norm(x, (4,)),
    "mse_loss": lambda x: functional.mse_loss(x, x),
    "nll_loss": lambda x: functional.nll_loss(x, torch.zeros(4, dtype=torch.long, device="openreg")),
    "sum": torch.sum,
    "softmax": lambda x: functional.softmax(x, dim=0),
    "log_softmax": lambda x: functional.log_softmax(x, dim=0),
    "cumsum": lambda x: torch.cumsum(x, dim=0),
    "norm.Scalar": lambda x: torch.ops.aten.norm.Scalar(x),
    "norm.ScalarOpt_dim": lambda x: torch.ops.aten.norm.ScalarOpt_dim(x, 2, [0]),
}


@pytest.mark.parametrize("dtype", LOWER, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_run_in_the_autocast_type(name, dtype):
    with torch.autocast("openreg", dtype=dtype):
        assert PRODUCTS[name]().dtype is dtype


@pytest.mark.parametrize("dtype", LOWER, ids=str)
@pytest.mark.parametrize("name", PRECISE)
def test_what_needs_precision_runs_in_float32(name, dtype):
    with torch.autocast("openreg", dtype=dtype):
        assert PRECISE[name](matrix(dtype)).dtype is torch.float32


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


def test_the_operators_with_rules_are_those_of_cuda():
    listed = torch._C._dispatch_get_registrations_for_dispatch_key
    ours, theirs = set(listed("AutocastPrivateUse1")), set(listed("AutocastCUDA"))
    assert ours <= theirs
    assert theirs - ours == {name for name in theirs if "cudnn" in name}


def test_all_other_operators_fall_through():
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "AutocastPrivateUse1")
    table = torch._C._dispatch_dump_table("aten::add.Tensor")
    (line,) = (line for line in table.splitlines() if line.startswith("AutocastPrivateUse1:"))
    assert "fallthrough" in line
