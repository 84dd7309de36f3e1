# SPDX-License-Identifier: BSD-3-Clause
"""Autocast: lists of operators that run in the lower precision, in float32 or in the widest dtype; and GradScaler.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` are then skipped.
"""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from openreg_testing.conformance.harness import DeviceUnderTest, covers

RULES = "registration.rules of AutocastPrivateUse1"
SCALER = "registration.aten::_amp_foreach_non_finite_check_and_unscale_ and aten::_amp_update_scale_"
TensorFunction = Callable[[torch.Tensor], torch.Tensor]

# Operators that PyTorch's autocast lists for CUDA have in common with those of the CPU and of most backends. Their
# operands are cast to the lower precision, to float32, and to the widest dtype of the operands.
LOWER: dict[str, TensorFunction] = {
    "mm": lambda x: torch.mm(x, x),
    "matmul": lambda x: x @ x,
    "bmm": lambda x: torch.bmm(x[None], x[None]),
    "addmm": lambda x: torch.addmm(x, x, x),
    "linear": lambda x: functional.linear(x, x),
    "conv2d": lambda x: functional.conv2d(x[None, None], x[None, None]),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, x),
}
SINGLE: dict[str, TensorFunction] = {
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
    "layer_norm": lambda x: functional.layer_norm(x, (4,)),
    "exp": torch.exp,
    "log": lambda x: torch.log(x.abs() + 1),
    "pow": lambda x: torch.pow(x.abs(), 1.5),
    "sum": lambda x: x.sum(),
    "mse_loss": lambda x: functional.mse_loss(x, x + 1),
    "cosine_similarity": lambda x: functional.cosine_similarity(x, x),
}
WIDEST: dict[str, TensorFunction] = {
    "addcmul": lambda x: torch.addcmul(x, x, x.float()),
    "cat": lambda x: torch.cat([x, x.float()]),
    "stack": lambda x: torch.stack([x, x.float()]),
}


@pytest.fixture
def autocast_device(accelerator: DeviceUnderTest) -> DeviceUnderTest:
    """The device under test. Skips the test if the backend has no autocast rules."""
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::mm", "AutocastPrivateUse1"):
        pytest.skip("not claimed: no autocast rule is registered for AutocastPrivateUse1 (aten::mm has none)")
    return accelerator


def low_precision(device: DeviceUnderTest) -> torch.dtype:
    """Returns the dtype of the lower precision: float16 if the device supports it, else bfloat16."""
    supported = device.module.get_amp_supported_dtype()
    return torch.float16 if torch.float16 in supported else torch.bfloat16


@covers("module.get_amp_supported_dtype")
def test_the_module_names_dtypes(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.get_amp_supported_dtype() lists float16 or bfloat16; torch.autocast accepts each listed dtype."""
    supported = accelerator.module.get_amp_supported_dtype()
    assert {torch.float16, torch.bfloat16} & set(supported)
    for dtype in supported:
        with torch.autocast(accelerator.name, dtype=dtype):
            assert torch.is_autocast_enabled(accelerator.name)
            assert torch.get_autocast_dtype(accelerator.name) == dtype
    assert not torch.is_autocast_enabled(accelerator.name)


@covers(RULES)
@pytest.mark.parametrize("name", LOWER)
def test_products_run_in_the_lower_precision(autocast_device: DeviceUnderTest, name: str) -> None:
    """Under autocast an operator of the first list casts float32 operands to the lower precision."""
    x = torch.randn(4, 4).to(autocast_device.first)
    with torch.autocast(autocast_device.name, dtype=low_precision(autocast_device)):
        assert LOWER[name](x).dtype == low_precision(autocast_device)
    assert LOWER[name](x).dtype == torch.float32


@covers(RULES)
@pytest.mark.parametrize("name", SINGLE)
def test_what_needs_range_runs_in_float32(autocast_device: DeviceUnderTest, name: str) -> None:
    """Under autocast an operator of the second list casts operands of the lower precision to float32."""
    x = torch.randn(4, 4).to(autocast_device.first, low_precision(autocast_device))
    with torch.autocast(autocast_device.name, dtype=low_precision(autocast_device)):
        assert SINGLE[name](x).dtype == torch.float32


@covers(RULES)
@pytest.mark.parametrize("name", WIDEST)
def test_mixed_operands_run_in_the_widest_type(autocast_device: DeviceUnderTest, name: str) -> None:
    """Under autocast an operator of the third list casts its operands to the widest of their dtypes."""
    x = torch.randn(4, 4).to(autocast_device.first, low_precision(autocast_device))
    with torch.autocast(autocast_device.name, dtype=low_precision(autocast_device)):
        assert WIDEST[name](x).dtype == torch.float32


@covers(RULES)
def test_what_is_unsafe_is_refused(autocast_device: DeviceUnderTest) -> None:
    """binary_cross_entropy raises RuntimeError under autocast, because its logarithms are inexact in float16."""
    x = torch.full((2,), 0.5).to(autocast_device.first)
    with (
        torch.autocast(autocast_device.name, dtype=low_precision(autocast_device)),
        pytest.raises(RuntimeError, match="autocast"),
    ):
        functional.binary_cross_entropy(x, x)


@covers(RULES)
def test_autocast_can_be_switched_off_inside(autocast_device: DeviceUnderTest) -> None:
    """`with torch.autocast(device, enabled=False)` inside of another context disables casts."""
    x = torch.randn(4, 4).to(autocast_device.first)
    with torch.autocast(autocast_device.name, dtype=low_precision(autocast_device)):
        with torch.autocast(autocast_device.name, enabled=False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == low_precision(autocast_device)


@covers(RULES)
def test_other_types_are_left_alone(autocast_device: DeviceUnderTest) -> None:
    """Integers and float64 are not cast."""
    x = torch.ones(2, 2, dtype=torch.float64).to(autocast_device.first)
    with torch.autocast(autocast_device.name, dtype=low_precision(autocast_device)):
        assert (x @ x).dtype == torch.float64


@covers(RULES)
def test_gradients_of_parameters_stay_float32(autocast_device: DeviceUnderTest) -> None:
    """A model in float32 trains under autocast: its gradients are float32, and near those of the CPU."""
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 4)
    here = torch.nn.Linear(4, 4)
    here.load_state_dict(model.state_dict())
    here.to(autocast_device.first)
    x = torch.randn(3, 4)
    with torch.autocast(autocast_device.name, dtype=low_precision(autocast_device)):
        loss = here(x.to(autocast_device.first)).square().mean()
    loss.backward()
    model(x).square().mean().backward()
    assert here.weight.grad is not None
    assert here.weight.grad.dtype == torch.float32
    torch.testing.assert_close(here.weight.grad.cpu(), model.weight.grad, rtol=5e-2, atol=5e-2)


@covers(SCALER)
def test_a_scaler_scales_and_steps(accelerator: DeviceUnderTest) -> None:
    """GradScaler scales the loss, unscales the gradients for the optimizer, and steps if they are finite."""
    x = torch.nn.Parameter(accelerator.tensor(1, 2))
    optimizer = torch.optim.SGD([x], lr=0.5)
    scaler = torch.amp.GradScaler(accelerator.name, init_scale=8.0)
    scaler.scale((x * 2).sum()).backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert x.grad.tolist() == [16, 16]
    scaler.step(optimizer)
    scaler.update()
    assert x.tolist() == [0, 1]
    assert scaler.get_scale() == 8


@covers(SCALER)
def test_a_scaler_skips_what_is_not_finite(accelerator: DeviceUnderTest) -> None:
    """GradScaler skips a step whose gradients are infinite, and halves the scale."""
    x = torch.nn.Parameter(accelerator.tensor(1, 2))
    optimizer = torch.optim.SGD([x], lr=0.5)
    scaler = torch.amp.GradScaler(accelerator.name, init_scale=8.0)
    scaler.scale((x * float("inf")).sum()).backward()  # type: ignore[no-untyped-call]
    scaler.step(optimizer)
    scaler.update()
    assert x.tolist() == [1, 2]
    assert scaler.get_scale() == 4
