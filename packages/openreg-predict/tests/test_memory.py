# SPDX-License-Identifier: BSD-3-Clause
"""The peak of memory that is predicted on meta, beside what the device really used."""

import pytest
import torch
from torch import nn

import openreg_ops  # noqa: F401
from openreg_predict.script import OnMeta
from openreg_predict.trace import trace


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.RMSNorm(64), nn.Linear(64, 192, bias=False), nn.Linear(64, 64)

    def forward(self, x):
        query, key, value = self.qkv(self.norm(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + self.out(attended.transpose(1, 2).flatten(2))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 8)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


MODELS = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 8)), (64, 128)),
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        (16, 3, 16, 16),
    ),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True, norm_first=True),
        (8, 32, 64),
    ),
    "decoder": (Decoder, (4, 64, 64)),
    "recurrent": (Recurrent, (8, 16, 32)),
}


def training(name, device):
    make, shape = MODELS[name]
    model = make().to(device)
    batch = torch.rand(shape, device=device)
    optimiser = torch.optim.AdamW(model.parameters())

    def step():
        optimiser.zero_grad()
        model(batch).square().mean().backward()
        optimiser.step()

    return step


@pytest.mark.parametrize("name", MODELS)
def test_the_peak_is_within_three_percent_of_the_devices(name):
    before = torch.accelerator.memory_allocated()
    step = training(name, "openreg")
    step()
    torch.accelerator.synchronize()
    torch.accelerator.reset_peak_memory_stats()
    step()
    torch.accelerator.synchronize()
    used = torch.accelerator.max_memory_allocated() - before
    with OnMeta():
        program = trace(training(name, "meta"))
    assert program.peak == pytest.approx(used, rel=0.03)
    assert program.without_rule() == []
