# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision with real tensors; the rules themselves are tested in openreg-amp."""

import pytest
import torch
from torch.nn import functional


def matrix(seed=0):
    return torch.rand(8, 8, generator=torch.Generator().manual_seed(seed)) * 0.9


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_products_run_in_the_autocast_type(dtype):
    a, b = matrix(1), matrix(2)
    with torch.autocast("openreg", dtype=dtype):
        result = a.to("openreg") @ b.to("openreg")
    assert result.dtype is dtype
    torch.testing.assert_close(result.cpu(), a.to(dtype) @ b.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_what_needs_precision_runs_in_float32(dtype):
    x = matrix().to(dtype)
    with torch.autocast("openreg", dtype=dtype):
        result = torch.asin(x.to("openreg"))
    assert result.dtype is torch.float32
    torch.testing.assert_close(result.cpu(), torch.asin(x.float()))


def test_binary_cross_entropy_is_refused_and_the_advice_works():
    logits, target = torch.randn(4), torch.ones(4)
    x = logits.to("openreg")
    with torch.autocast("openreg"):
        with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            functional.binary_cross_entropy(torch.sigmoid(x), target.to("openreg"))
        loss = functional.binary_cross_entropy_with_logits(x, target.to("openreg"))
    expected = functional.binary_cross_entropy_with_logits(logits, target)
    torch.testing.assert_close(loss.cpu(), expected)


def test_gradients_have_the_types_of_the_parameters():
    torch.manual_seed(0)
    reference = torch.nn.Linear(8, 4)
    model = torch.nn.Linear(8, 4).to("openreg")
    model.load_state_dict(reference.state_dict())
    x = matrix()
    with torch.autocast("openreg", dtype=torch.bfloat16):
        output = model(x.to("openreg"))
        loss = functional.mse_loss(output, torch.zeros(8, 4, device="openreg"))
    assert output.dtype is torch.bfloat16
    assert loss.dtype is torch.float32
    loss.backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        functional.mse_loss(reference(x).float(), torch.zeros(8, 4)).backward()
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        assert ours.grad.dtype is torch.float32
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=2e-2, atol=2e-2)


def scaled_step(model, scaler, scale_of_loss=1.0):
    """One step; returns whether the weights changed."""
    before = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(torch.ones(2, 3, device="openreg")).sum() * scale_of_loss
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return not torch.equal(before.cpu(), model.weight.detach().cpu())


def test_the_scaler_scales_and_skips_steps_with_infinities():
    model = torch.nn.Linear(3, 1, bias=False).to("openreg")
    scaler = torch.openreg.amp.GradScaler(init_scale=4.0, growth_interval=1)
    before = model.weight.detach().cpu().clone()
    assert scaled_step(model, scaler)
    # The gradient of the sum over two rows of ones is 2, whatever the scale.
    torch.testing.assert_close(model.weight.detach().cpu(), before - 0.1 * 2)
    assert scaler.get_scale() == 8.0
    assert not scaled_step(model, scaler, scale_of_loss=float("inf"))
    assert scaler.get_scale() == 4.0
