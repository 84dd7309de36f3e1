# SPDX-License-Identifier: BSD-3-Clause
"""The measured models as eager PyTorch ran them, with attention and the tanh approximation of GELU as single operators.

They follow the sequences of operators that were published with the latencies. Attributes that a breakdown shows have
the names of the measured models' modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer."""

    width: int
    heads: int
    layers: int
    inner: int
    words: int
    positions: int


class BertLayer(nn.Module):
    """Attention and feed-forward, each followed by dropout, a residual and a layer norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.query, self.key, self.value, self.dense = (nn.Linear(shape.width, shape.width) for _ in range(4))
        self.norm, self.output_norm = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.intermediate = nn.Linear(shape.width, shape.inner)
        self.output = nn.Linear(shape.inner, shape.width)
        self.attention_dropout, self.dropout, self.output_dropout = (nn.Dropout(0.1) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Maps (batch, length, width) to (batch, length, width), and adds the mask to the scores."""
        query, key, value = (
            part(x).unflatten(-1, (self.heads, -1)).permute(0, 2, 1, 3) for part in (self.query, self.key, self.value)
        )
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])
        weights = self.attention_dropout(functional.softmax(scores + mask, dim=-1))
        attended = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous().flatten(2)
        x = self.norm(self.dropout(self.dense(attended)) + x)
        inner = functional.gelu(self.intermediate(x))
        normalized: Tensor = self.output_norm(self.output_dropout(self.output(inner)) + x)
        return normalized


class Bert(nn.Module):
    """A sequence classifier for inference, or with the pretraining heads (words and next sentence) for training."""

    def __init__(self, shape: Shape, is_training: bool) -> None:
        super().__init__()
        width = shape.width
        self.word_embeddings, self.type_embeddings = nn.Embedding(shape.words, width), nn.Embedding(2, width)
        self.position_embeddings = nn.Embedding(shape.positions, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        self.layers = nn.ModuleList(BertLayer(shape) for _ in range(shape.layers))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)
        self.transform = nn.Linear(width, width) if is_training else None
        self.transform_norm = nn.LayerNorm(width) if is_training else None
        self.decoder = nn.Linear(width, shape.words) if is_training else None

    def forward(self, words: Tensor) -> tuple[Tensor, ...]:
        """Maps (batch, length) word indices to scores of classes, in training preceded by scores of words."""
        positions = torch.arange(words.shape[1], device=words.device).unsqueeze(0)
        mask = (1.0 - torch.ones(words.shape[0], 1, 1, words.shape[1], device=words.device)) * -1e30
        x = self.word_embeddings(words) + self.type_embeddings(torch.zeros_like(words))
        x = self.dropout(self.norm(x + self.position_embeddings(positions)))
        for layer in self.layers:
            x = layer(x, mask)
        pooled = self.classifier(torch.tanh(self.pooler(x[:, 0])))
        if self.transform is None or self.transform_norm is None or self.decoder is None:
            return (pooled,)
        return self.decoder(self.transform_norm(functional.gelu(self.transform(x)))), pooled


class Transposed(nn.Module):
    """A linear layer whose weight is (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(inputs, outputs)), nn.Parameter(torch.empty(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (..., inputs) to (..., outputs)."""
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


def gelu_by_tanh(x: Tensor) -> Tensor:
    """Returns the tanh approximation of GELU, computed by eight operators."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class GptBlock(nn.Module):
    """A transformer block with a layer norm before attention and before the feed-forward part."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.ln_1, self.ln_2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.c_attn, self.c_proj = Transposed(shape.width, 3 * shape.width), Transposed(shape.width, shape.width)
        self.mlp_fc, self.mlp_proj = Transposed(shape.width, shape.inner), Transposed(shape.inner, shape.width)
        self.attn_dropout, self.resid_dropout, self.mlp_dropout = (nn.Dropout(0.1) for _ in range(3))
        mask = torch.ones(shape.positions, shape.positions, dtype=torch.bool).tril()
        self.register_buffer("mask", mask.view(1, 1, shape.positions, shape.positions))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, length, width) to (batch, length, width)."""
        length = x.shape[1]
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).permute(0, 2, 1, 3)
            for part in self.c_attn(self.ln_1(x)).split(x.shape[-1], dim=2)
        )
        scores = torch.matmul(query, key.transpose(-1, -2))
        scores = scores / torch.full([], math.sqrt(query.shape[-1]), device=x.device)
        least = torch.full([], torch.finfo(x.dtype).min, device=x.device)
        scores = torch.where(self.get_buffer("mask")[:, :, :length, :length], scores, least)
        weights = self.attn_dropout(functional.softmax(scores, dim=-1))
        attended = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous().flatten(2)
        x = self.resid_dropout(self.c_proj(attended)) + x
        inner: Tensor = self.mlp_dropout(self.mlp_proj(gelu_by_tanh(self.mlp_fc(self.ln_2(x)))))
        return x + inner


class Gpt(nn.Module):
    """A decoder that scores the next word."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(shape.words, shape.width), nn.Embedding(shape.positions, shape.width)
        self.drop = nn.Dropout(0.1)
        self.h = nn.ModuleList(GptBlock(shape) for _ in range(shape.layers))
        self.ln_f, self.lm_head = nn.LayerNorm(shape.width), nn.Linear(shape.width, shape.words, bias=False)

    def forward(self, words: Tensor) -> tuple[Tensor, ...]:
        """Maps (batch, length) word indices to (batch, length, words) scores."""
        positions = torch.arange(words.shape[1], device=words.device).unsqueeze(0)
        x = self.drop(self.wte(words) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        return (self.lm_head(self.ln_f(x)),)


class OptLayer(nn.Module):
    """A transformer block with three separate projections and one batched product over all heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(shape.width, shape.width) for _ in range(4))
        self.self_attn_layer_norm, self.final_layer_norm = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.fc1, self.fc2 = nn.Linear(shape.width, shape.inner), nn.Linear(shape.inner, shape.width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Maps (batch, length, width) to (batch, length, width), and adds the mask to the scores."""
        batch, length, width = x.shape
        hidden = self.self_attn_layer_norm(x)
        head = width // self.heads

        def split(part: Tensor) -> Tensor:
            return part.view(batch, length, self.heads, head).transpose(1, 2).contiguous()

        query = split(self.q_proj(hidden) * head**-0.5).view(-1, length, head)
        key, value = (split(part(hidden)).view(-1, length, head) for part in (self.k_proj, self.v_proj))
        scores = torch.bmm(query, key.transpose(1, 2)).view(batch, self.heads, length, length) + mask
        least = torch.full([], torch.finfo(x.dtype).min, device=x.device)
        scores = torch.max(scores, least).view(-1, length, length)
        attended = torch.bmm(functional.softmax(scores, dim=-1), value).view(batch, self.heads, length, head)
        attended = self.out_proj(attended.transpose(1, 2).reshape(batch, length, width))
        x = x + functional.dropout(attended, 0.1, self.training)
        inner = self.fc2(functional.relu(self.fc1(self.final_layer_norm(x.reshape(-1, width)))))
        return x + functional.dropout(inner, 0.1, self.training).view(batch, length, width)


class Opt(nn.Module):
    """A decoder that scores the next word."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.words, shape.width)
        self.embed_positions = nn.Embedding(shape.positions + 2, shape.width)
        self.layers = nn.ModuleList(OptLayer(shape) for _ in range(shape.layers))
        self.final_layer_norm = nn.LayerNorm(shape.width)
        self.lm_head = nn.Linear(shape.width, shape.words, bias=False)

    def forward(self, words: Tensor) -> tuple[Tensor, ...]:
        """Maps (batch, length) word indices to (batch, length, words) scores."""
        length = words.shape[1]
        mask = torch.full((1, 1, length, length), -1e30, device=words.device).triu(1)
        positions = torch.arange(length, device=words.device).unsqueeze(0) + 2
        x = self.embed_tokens(words) + self.embed_positions(positions)
        for layer in self.layers:
            x = layer(x, mask)
        return (self.lm_head(self.final_layer_norm(x)),)


SHAPES = {
    "bert_large": Shape(1024, 16, 24, 4096, 30522, 512),
    "gpt2_large": Shape(1280, 20, 36, 5120, 50257, 1024),
    "gpt3_xl": Shape(3072, 24, 24, 12288, 50257, 2048),
    "gpt3_27": Shape(2560, 32, 32, 10240, 50257, 2048),
    "opt_13": Shape(2048, 32, 24, 8192, 50272, 2048),
}


def build(name: str, is_training: bool) -> nn.Module:
    """Returns the model with a name of the measurements, on the default device."""
    shape = SHAPES[name]
    model: nn.Module
    if name.startswith("bert"):
        model = Bert(shape, is_training)
    else:
        model = Opt(shape) if name.startswith("opt") else Gpt(shape)
    return model.train(is_training)


def step(name: str, is_training: bool, length: int, batch: int) -> Callable[[], None]:
    """Returns the measured step on ``meta``: the forward pass, and in training the backward pass.

    The backward pass accumulates into gradients that exist.
    """
    with torch.device("meta"):
        model = build(name, is_training)
        words = torch.zeros(batch, length, dtype=torch.int64)
    for parameter in model.parameters():
        parameter.grad = torch.empty_like(parameter) if is_training else None

    def run() -> None:
        if not is_training:
            with torch.no_grad():
                model(words)
            return
        outputs = model(words)
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])

    return run
