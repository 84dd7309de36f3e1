# SPDX-License-Identifier: BSD-3-Clause
"""Gradient scaling gives the same scales, skipped steps and weights on the device as on the CPU."""

import copy
import io
import math
import pickle

import pytest
import torch
from torch import nn

INF, NAN = math.inf, math.nan

# What the loss of each step is multiplied with: growth, infinities, nan twice in a row, and recovery.
FACTORS = (1, 1, 1, INF, 1, NAN, NAN, 1, 1, 1, -INF, 1)

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "SGD fused": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, fused=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "Adam one by one": lambda parameters: torch.optim.Adam(parameters, lr=0.01, foreach=False),
    "Adam fused": lambda parameters: torch.optim.Adam(parameters, lr=0.01, fused=True),
    "AdamW fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, fused=True),
    "Adagrad fused": lambda parameters: torch.optim.Adagrad(parameters, lr=0.01, fused=True),
}


def network(device):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)


def batch(device):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(10, size, generator=generator).to(device) for size in (6, 3)]


def weights(model):
    return [parameter.detach().cpu().clone() for parameter in model.parameters()]


def train(device, make_optimizer, factors=FACTORS, *, clip=None, autocast=None):
    """After each step: the scale, the growth tracker, whether the step was skipped, and the weights."""
    model = network(device)
    optimizer = make_optimizer(model.parameters())
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=1024.0, growth_interval=2)
    x, target = batch(device)
    seen = []
    for factor in factors:
        before = weights(model)
        optimizer.zero_grad()
        with torch.autocast(torch.device(device).type, dtype=autocast, enabled=autocast is not None):
            loss = (model(x) - target).pow(2).mean() * factor
        scaler.scale(loss).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        skipped = all(map(torch.equal, before, weights(model)))
        seen.append((scaler.get_scale(), scaler._get_growth_tracker(), skipped, weights(model)))
    return seen


def assert_equal_steps(ours, theirs):
    """All is bit for bit the same: both compute in float32, with the same kernels."""
    for number, (mine, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert mine[:3] == expected[:3], number
        assert all(map(torch.equal, mine[3], expected[3])), number


@pytest.mark.covers("registration.aten::_amp_foreach_non_finite_check_and_unscale_ and aten::_amp_update_scale_")
@pytest.mark.parametrize("device", ["openreg:0", "openreg:1"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_run_with_infinities_equals_that_of_the_cpu_step_by_step(name, device):
    ours = train(device, OPTIMIZERS[name])
    assert [scale for scale, *_ in ours] == [1024, 2048, 2048, 1024, 1024, 512, 256, 256, 512, 512, 256, 256]
    assert [tracker for _, tracker, *_ in ours] == [1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1]
    assert [skipped for _, _, skipped, _ in ours] == [not math.isfinite(factor) for factor in FACTORS]
    assert_equal_steps(ours, train("cpu", OPTIMIZERS[name]))


def test_clipping_between_unscaling_and_the_step_equals_that_of_the_cpu():
    ours, theirs = (train(device, OPTIMIZERS["SGD"], clip=0.1) for device in ("openreg", "cpu"))
    assert [step[:3] for step in ours] == [step[:3] for step in theirs]
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine[3], expected[3])
    assert not torch.equal(ours[-1][3][0], train("openreg", OPTIMIZERS["SGD"])[-1][3][0])


def test_a_run_in_half_precision_that_overflows_by_itself_equals_that_of_the_cpu():
    ours, theirs = (
        train(device, OPTIMIZERS["SGD"], (2.0**10,) * 8, autocast=torch.float16) for device in ("openreg", "cpu")
    )
    assert [step[:3] for step in ours] == [step[:3] for step in theirs]
    assert any(skipped for _, _, skipped, _ in ours)
    assert not all(skipped for _, _, skipped, _ in ours)
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine[3], expected[3], rtol=1e-2, atol=1e-2)


def test_one_infinity_skips_the_step_of_its_optimizer_and_lowers_the_scale_of_all():
    models = [nn.Linear(2, 1, bias=False).to("openreg") for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=1.0) for model in models]
    scaler = torch.amp.GradScaler("openreg", init_scale=8.0)
    before = [weights(model)[0] for model in models]
    x = torch.ones(1, 2, device="openreg")
    losses = [models[0](x).sum() * INF, models[1](x).sum()]
    for loss in scaler.scale(losses):
        loss.backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert torch.equal(weights(models[0])[0], before[0])
    torch.testing.assert_close(weights(models[1])[0], before[1] - 1)
    assert scaler.get_scale() == 4.0


@pytest.mark.parametrize("bad", [None, 0, 1])
@pytest.mark.parametrize("fused", [False, True])
def test_an_optimizer_over_two_devices_asks_both(bad, fused):
    halves = [torch.ones(3, device=f"openreg:{index}", requires_grad=True) for index in range(2)]
    optimizer = torch.optim.SGD(halves, lr=1.0, fused=fused)
    scaler = torch.amp.GradScaler("openreg", init_scale=4.0)
    factors = [INF if bad == index else 1.0 for index in range(2)]
    total = sum((half.sum() * factor).to("openreg:0") for half, factor in zip(halves, factors, strict=True))
    scaler.scale(total).backward()
    scaler.unscale_(optimizer)
    found = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
    assert {str(device): flag.item() for device, flag in found.items()} == {
        f"openreg:{index}": float(bad == index) for index in range(2)
    }
    scaler.step(optimizer)
    scaler.update()
    for half in halves:
        assert half.detach().cpu().tolist() == ([0.0] * 3 if bad is None else [1.0] * 3)
    assert scaler.get_scale() == (4.0 if bad is None else 2.0)


def saved(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer)


@pytest.mark.parametrize("through", [copy.deepcopy, saved], ids=["dict", "file"])
@pytest.mark.parametrize("split", [3, 4, 7])
def test_a_run_goes_on_from_a_checkpoint(split, through):
    model, x, target = network("openreg"), *batch("openreg")
    optimizer, scaler = OPTIMIZERS["Adam"](model.parameters()), torch.openreg.amp.GradScaler(1024.0, growth_interval=2)
    for number, factor in enumerate(FACTORS):
        if number == split:
            checkpoint = through([item.state_dict() for item in (model, optimizer, scaler)])
            model = network("openreg")
            optimizer, scaler = OPTIMIZERS["Adam"](model.parameters()), torch.amp.GradScaler("openreg")
            for item, state in zip((model, optimizer, scaler), checkpoint, strict=True):
                item.load_state_dict(state)
        optimizer.zero_grad()
        scaler.scale((model(x) - target).pow(2).mean() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
    scale, tracker, _, expected = train("openreg", OPTIMIZERS["Adam"])[-1]
    assert (scaler.get_scale(), scaler._get_growth_tracker()) == (scale, tracker)
    assert all(map(torch.equal, weights(model), expected))


def test_a_scaler_with_tensors_on_the_device_loads_and_pickles():
    scaler = torch.amp.GradScaler("openreg", init_scale=4.0)
    scaler.scale(torch.ones((), device="openreg"))
    state = {**scaler.state_dict(), "scale": 32.0, "_growth_tracker": 5}
    scaler.load_state_dict(state)
    assert scaler.state_dict() == state
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == state


def test_a_disabled_scaler_passes_everything_through():
    model = nn.Linear(2, 1).to("openreg")
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("openreg", enabled=False)
    loss = model(torch.ones(1, 2, device="openreg")).sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    gradient = model.bias.grad
    before = model.bias.item()
    scaler.unscale_(optimizer)
    assert model.bias.grad is gradient
    scaler.step(optimizer)
    scaler.update()
    assert model.bias.item() == pytest.approx(before - 1)
    assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})


def test_the_scale_can_be_set():
    scaler = torch.amp.GradScaler("openreg", init_scale=4.0)
    scaler.scale(torch.ones((), device="openreg"))
    scaler.update(64.0)
    assert scaler.get_scale() == 64.0
    scaler.update(torch.full((), 16.0, device="openreg"))
    assert scaler.get_scale() == 16.0


@pytest.mark.no_fallback
def test_what_the_scaler_asks_of_the_device_is_native_and_does_not_wait(gate):
    weight = torch.ones(1000, device="openreg", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0, fused=True)
    scaler = torch.amp.GradScaler("openreg", init_scale=4.0, growth_interval=1)
    torch.openreg.synchronize()
    gate.close()
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert not torch.openreg.current_stream().query()
    gate.open()
    assert weight.detach().cpu().unique().tolist() == [0.0]
    assert scaler.get_scale() == 8.0


def test_misuse_names_what_to_do():
    weight = torch.ones(2, device="openreg", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("openreg", init_scale=4.0)
    with pytest.raises(AssertionError, match=r"scaler\.scale"):
        scaler.step(optimizer)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(RuntimeError, match=r"[Cc]losure"):
        scaler.step(optimizer, closure=lambda: None)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="disabled"):
        scaler.load_state_dict({})


def test_gradients_in_half_precision_are_refused():
    weight = torch.ones(2, dtype=torch.float16, device="openreg", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("openreg", init_scale=4.0)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.step(optimizer)
