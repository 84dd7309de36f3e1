# SPDX-License-Identifier: BSD-3-Clause
"""Defines the five models of the benchmarks, each with a batch to train on.

They are as small as those of unit tests and tutorials, so that overhead shows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Task:
    """A model, an input, and a function that computes the loss from the model's output."""

    model: nn.Module
    batch: torch.Tensor
    loss: Callable[[torch.Tensor], torch.Tensor]


def mlp(device: torch.device) -> Task:
    """Returns a task with three linear layers, 256 to 512 to 512 to 10, and batch 128."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    labels = torch.randint(10, (128,), device=device)
    return Task(model.to(device), torch.rand(128, 256, device=device), lambda y: functional.cross_entropy(y, labels))


def convnet(device: torch.device) -> Task:
    """Returns a task with two convolutions with batch norm and a linear layer, images of 3 x 16 x 16, and batch 32."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(512, 10),
    )
    labels = torch.randint(10, (32,), device=device)
    return Task(
        model.to(device), torch.rand(32, 3, 16, 16, device=device), lambda y: functional.cross_entropy(y, labels)
    )


def encoder(device: torch.device) -> Task:
    """Returns a task with one layer of torch.nn's transformer encoder: width 128, four heads, eight sequences of 32."""
    model = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True, norm_first=True)
    batch = torch.rand(8, 32, 128, device=device)
    return Task(model.to(device), batch, lambda y: y.square().mean())


class DecoderBlock(nn.Module):
    """Causal attention by SDPA and a gated feed-forward layer, each behind an RMS norm."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList((nn.RMSNorm(width), nn.RMSNorm(width)))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def split(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Returns query, key and value of `x`, each of shape (batch, heads, length, width of a head)."""
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return parts.unbind(0)

    def merge(self, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """Returns the block's output for its input `x` and the result of attention."""
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        value, gate = self.up(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.down(value * functional.silu(gate))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps (batch, length, width) to the same shape."""
        query, key, value = self.split(self.norms[0](x))
        return self.merge(x, functional.scaled_dot_product_attention(query, key, value, is_causal=True))


def decoder(device: torch.device) -> Task:
    """Returns a task with one decoder block: width 128, four heads, four sequences of 64."""
    batch = torch.rand(4, 64, 128, device=device)
    return Task(DecoderBlock(128, 4).to(device), batch, lambda y: y.square().mean())


class Tagger(nn.Module):
    """An LSTM and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(64, 128, batch_first=True)
        self.head = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps (batch, length, 64) to (batch, length, 10)."""
        return self.head(self.lstm(x)[0])


def lstm(device: torch.device) -> Task:
    """Returns a task with an LSTM of one layer, 64 to 128, and sixteen sequences of 32."""
    labels = torch.randint(10, (16 * 32,), device=device)
    batch = torch.rand(16, 32, 64, device=device)
    return Task(Tagger().to(device), batch, lambda y: functional.cross_entropy(y.flatten(0, 1), labels))


MODELS = {"MLP": mlp, "convnet": convnet, "encoder": encoder, "decoder": decoder, "LSTM": lstm}
