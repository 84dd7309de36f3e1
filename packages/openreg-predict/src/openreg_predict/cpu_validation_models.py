# SPDX-License-Identifier: BSD-3-Clause
"""Defines small models that validate the description of a machine's CPU. None of them is part of its calibration."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """A residual connection: adds the output of the inner modules to their input."""

    def __init__(self, *inner: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Sequential(*inner)

    def forward(self, x: Tensor) -> Tensor:
        """Returns a tensor with the shape of the input."""
        result: Tensor = x + self.inner(x)
        return result


class Attention(nn.Module):
    """Attention of single operators, over all positions or, if causal, over none after the query's."""

    def __init__(self, width: int, heads: int, is_causal: bool) -> None:
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, length, width) to (batch, length, width)."""
        query, key, value = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        if self.is_causal:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
            scores = torch.where(mask, scores, torch.full([], -1e30, device=x.device))
        attended: Tensor = self.out((torch.softmax(scores, -1) @ value).transpose(1, 2).flatten(2))
        return attended


class Mixer(nn.Module):
    """A block with a layer over positions, then one over channels."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.over_positions = nn.Sequential(nn.Linear(length, 2 * length), nn.GELU(), nn.Linear(2 * length, length))
        self.over_channels = Residual(nn.LayerNorm(width), *feed_forward(width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, length, width) to (batch, length, width)."""
        x = x + self.over_positions(self.norm(x).transpose(1, 2)).transpose(1, 2)
        result: Tensor = self.over_channels(x)
        return result


class Recommender(nn.Module):
    """A small network over the concatenated rows of several embedding tables."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(5000, 64) for _ in range(6))
        self.top = nn.Sequential(nn.Linear(384, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, 6) row indices to (batch, 1) scores."""
        rows = [table(x[:, index]) for index, table in enumerate(self.tables)]
        scores: Tensor = self.top(torch.cat(rows, 1))
        return scores


def feed_forward(width: int) -> tuple[nn.Module, ...]:
    """Returns two linear layers with GELU between them."""
    return nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)


def transformer(width: int, heads: int, layers: int, is_causal: bool) -> nn.Module:
    """Returns a transformer with a layer norm before each attention and feed-forward part."""
    blocks: list[nn.Module] = []
    for _ in range(layers):
        blocks.append(Residual(nn.LayerNorm(width), Attention(width, heads, is_causal)))
        blocks.append(Residual(nn.LayerNorm(width), *feed_forward(width)))
    return nn.Sequential(*blocks)


def convolutions(*channels: int) -> list[nn.Module]:
    """Returns convolution, batch norm, ReLU and max pooling for each pair of consecutive channel counts."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(channels):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return layers


def residual_network() -> nn.Module:
    """Returns a network of four residual blocks with two convolutions each."""
    blocks = [
        Residual(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1))
        for _ in range(4)
    ]
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)
    )


def _widths(*widths: int) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers)


# Maps a name to functions that create the model and its input.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "perceptron": (lambda: _widths(300, 700, 700, 300, 10), lambda: torch.rand(192, 300)),
    "autoencoder": (lambda: _widths(784, 400, 100, 20, 100, 400, 784), lambda: torch.rand(256, 784)),
    "convolutions": (
        lambda: nn.Sequential(*convolutions(3, 24, 48, 96), nn.Flatten(), nn.Linear(1536, 10)),
        lambda: torch.rand(12, 3, 32, 32),
    ),
    "residual network": (residual_network, lambda: torch.rand(8, 3, 24, 24)),
    "encoder": (lambda: transformer(192, 6, 3, False), lambda: torch.rand(6, 96, 192)),
    "decoder": (lambda: transformer(320, 5, 2, True), lambda: torch.rand(3, 160, 320)),
    "mixer": (lambda: nn.Sequential(Mixer(64, 160), Mixer(64, 160)), lambda: torch.rand(10, 64, 160)),
    "recommender": (Recommender, lambda: torch.randint(5000, (768, 6))),
}


def step(name: str, is_training: bool) -> Callable[[], None]:
    """Returns a step of a model on the default device: the forward pass, and in training the backward pass and SGD."""
    make, batch_of = MODELS[name]
    model, batch = make(), batch_of()
    model.train(is_training)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def run() -> None:
        if not is_training:
            with torch.no_grad():
                model(batch)
            return
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return run
