# SPDX-License-Identifier: BSD-3-Clause
"""Every optimizer of PyTorch's own list (OptimizerInfo): its steps on the device equal those on the CPU.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses.
"""

from functools import partial
from typing import Any

import pytest
import torch
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db

from openreg_testing.conformance.harness import DeviceUnderTest, covers

STEPS = 4
BACKWARD = "registration.a backward pass"


def parameters(device: torch.device) -> list[torch.nn.Parameter]:
    """Returns parameters that are equal on all devices."""
    torch.manual_seed(5)
    return [torch.nn.Parameter(torch.randn(4, 3).to(device)), torch.nn.Parameter(torch.randn(3, 5).to(device))]


def train(info: OptimizerInfo, device: torch.device, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Returns the parameters on the CPU after STEPS steps of an optimizer."""
    weights = parameters(device)
    data = torch.linspace(-1, 1, 8).view(2, 4).to(device)
    make: Any = info.optim_cls
    optimizer = make(weights, **kwargs)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (data @ weights[0] @ weights[1]).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    for _ in range(STEPS):
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return [weight.detach().cpu() for weight in weights]


def settings(info: OptimizerInfo, device: DeviceUnderTest) -> list[dict[str, Any]]:
    """Returns those settings of PyTorch's list that apply to any device."""
    inputs = info.optim_inputs_func(device=device.first)
    plain = [dict(item.kwargs) for item in inputs if not {"capturable", "fused", "foreach"} & set(item.kwargs)]
    return [kwargs for kwargs in plain if not any(isinstance(value, torch.Tensor) for value in kwargs.values())]


@covers(BACKWARD)
@pytest.mark.parametrize("form", ["one by one", "foreach"])
@pytest.mark.parametrize("info", optim_db, ids=lambda info: info.optim_cls.__name__)
def test_steps_are_those_of_the_cpu(device: DeviceUnderTest, info: OptimizerInfo, form: str) -> None:
    """An optimizer changes parameters on the device as on the CPU, with each of its settings."""
    name = getattr(info.optim_cls, "__name__", "the optimizer")  # PyTorch's annotation is that of an instance
    if info.only_supports_sparse_grads:
        pytest.skip(f"{name} accepts only sparse gradients")
    if form not in ("one by one", *info.supported_impls):
        pytest.skip(f"PyTorch has no {form} implementation of {name}")
    extra = {"foreach": form == "foreach"} if "foreach" in info.supported_impls else {}
    for kwargs in settings(info, device):
        found, expected = train(info, device.first, {**kwargs, **extra}), train(info, torch.device("cpu"), kwargs)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4, msg=partial("with {}: {}".format, kwargs))


@covers(BACKWARD)
def test_state_lies_with_the_parameters(device: DeviceUnderTest) -> None:
    """The state that an optimizer keeps for a parameter is on the parameter's device."""
    weights = parameters(device.first)
    optimizer = torch.optim.Adam(weights)
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    for weight in weights:
        assert optimizer.state[weight]["exp_avg"].device == device.first
