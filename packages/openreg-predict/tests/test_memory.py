# SPDX-License-Identifier: BSD-3-Clause
"""The peak memory that is predicted on meta agrees with the peak on the device."""

import gc
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import openreg_ops  # noqa: F401
from openreg_predict.script import MetaDeviceMode
from openreg_predict.trace import trace

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from workloads.models import MODELS  # noqa: E402  (the models of the benchmarks)

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
    "fused AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, fused=True),
}


class Checkpointed(nn.Module):
    """Keeps no activations within its blocks."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(3)
        )

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x


class Attention(nn.Module):
    """PyTorch's own, with the weights that keep it from being fused."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class Upwards(nn.Module):
    """Down, up again by a transposed convolution, and beside what was before."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out = nn.Conv2d(11, 3, 3, padding=1)

    def forward(self, x):
        up = self.up(functional.silu(self.down(x)))
        return self.out(torch.cat([functional.interpolate(up, x.shape[-2:], mode="bilinear"), x], 1))


OTHERS = {
    "encoder with dropout": (
        lambda: nn.TransformerEncoderLayer(64, 4, 256, dropout=0.1, batch_first=True),
        (4, 32, 64),
    ),
    "attention with weights": (Attention, (4, 32, 64)),
    "checkpointed": (Checkpointed, (64, 128)),
    "transposed convolution": (Upwards, (4, 3, 16, 16)),
    "group norm": (
        lambda: nn.Sequential(nn.Conv2d(3, 16, 3), nn.GroupNorm(4, 16), nn.SiLU(), nn.AvgPool2d(2)),
        (8, 3, 16, 16),
    ),
    "two directions": (lambda: nn.LSTM(32, 64, 2, batch_first=True, bidirectional=True), (4, 16, 32)),
    "gated recurrent": (lambda: nn.GRU(32, 64, 2, batch_first=True, dropout=0.1), (4, 16, 32)),
    "recurrent": (lambda: nn.RNN(32, 64, batch_first=True), (4, 16, 32)),
}


def benchmark(name, optimizer, device):
    task = MODELS[name](torch.device(device))
    if optimizer is None:
        return lambda: inferred(task.model, task.batch)
    return training(task.model, task.batch, OPTIMIZERS[optimizer], task.loss)


def inferred(model, batch):
    with torch.no_grad():
        model(batch)


def training(model, batch, make, loss):
    optimizer = make(model.parameters())

    def step():
        optimizer.zero_grad()
        loss(model(batch)).backward()
        optimizer.step()

    return step


def other(name, device):
    make, shape = OTHERS[name]

    def loss(y):
        return (y[0] if isinstance(y, tuple) else y).square().mean()

    return training(make().to(device), torch.rand(shape, device=device), OPTIMIZERS["AdamW"], loss)


def compare(make, tolerance):
    gc.collect()
    before = torch.accelerator.memory_allocated()
    step = make("openreg")
    for _ in range(2):
        step()
    torch.accelerator.synchronize()
    torch.accelerator.reset_peak_memory_stats()
    step()
    torch.accelerator.synchronize()
    used = torch.accelerator.max_memory_allocated() - before
    with MetaDeviceMode():
        program = trace(make("meta"))
    assert program.peak == pytest.approx(used, rel=tolerance)
    assert program.without_rule() == []


def models_and_optimizers():
    """Each model without training and with one optimizer, in turn; endurance runs all with all."""
    for place, name in enumerate(MODELS):
        yield pytest.param(name, None, id=f"{name}-inference")
        for number, optimizer in enumerate(OPTIMIZERS):
            marks = () if number == place % len(OPTIMIZERS) else pytest.mark.endurance
            yield pytest.param(name, optimizer, id=f"{name}-{optimizer}", marks=marks)


@pytest.mark.parametrize(("name", "optimizer"), [*models_and_optimizers()])
def test_the_peak_of_the_benchmarks_models_is_the_devices(name, optimizer):
    compare(lambda device: benchmark(name, optimizer, device), 0.01)


@pytest.mark.filterwarnings("ignore:dropout option adds dropout:UserWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_the_peak_of_other_models_is_near(name):
    # On meta PyTorch takes the gradients of a linear layer apart, and one of them lives longer than on the device.
    compare(lambda device: other(name, device), 0.06 if name == "checkpointed" else 0.03)


def test_a_model_that_would_need_gigabytes_needs_none_on_meta():
    torch.accelerator.reset_peak_memory_stats()
    before = torch.accelerator.memory_allocated()
    with MetaDeviceMode():
        model = nn.Sequential(*[nn.Linear(16384, 16384, bias=False) for _ in range(4)]).cuda()
        program = trace(lambda: inferred(model, torch.rand(8, 16384)))
    assert program.peak >= 4 * 2**30
    assert all(parameter.is_meta for parameter in model.parameters())  # and not on the host
    assert torch.accelerator.max_memory_allocated() == before
