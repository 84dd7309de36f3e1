# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of inference: the five models, and a decoder that generates token by token."""

import torch
from torch.nn import functional

from workloads.models import MODELS, DecoderBlock
from workloads.workload import Call, Workload

TOKENS = 16
WIDTH, HEADS, LENGTH = 128, 4, 64


def inference(model: str):
    """Returns the preparation of a model's forward pass in inference mode."""

    def prepare(device: torch.device) -> Call:
        task = MODELS[model](device)
        task.model.eval()

        def forward() -> None:
            with torch.inference_mode():
                task.model(task.batch)

        return forward

    return prepare


def generation(device: torch.device) -> Call:
    """Prepares the generation of sixteen tokens by two decoder blocks with a key-value cache and greedy choice."""
    blocks = [DecoderBlock(WIDTH, HEADS).to(device) for _ in range(2)]
    embedding = torch.rand(97, WIDTH, device=device)
    caches = torch.zeros(len(blocks), 2, 1, HEADS, LENGTH, WIDTH // HEADS, device=device)

    def next_token(token: torch.Tensor, position: int) -> torch.Tensor:
        x = embedding[token]
        for block, cache in zip(blocks, caches, strict=True):
            query, key, value = block.split(block.norms[0](x))
            cache[0, :, :, position : position + 1] = key
            cache[1, :, :, position : position + 1] = value
            keys, values = cache[0, :, :, : position + 1], cache[1, :, :, : position + 1]
            x = block.merge(x, functional.scaled_dot_product_attention(query, keys, values))
        return (x @ embedding.T).argmax(-1)

    @torch.inference_mode()
    def generate() -> None:
        token = torch.zeros(1, 1, dtype=torch.int64, device=device)
        for position in range(TOKENS):
            token = next_token(token, position)

    return generate


WORKLOADS = [
    *(Workload(f"inference {model}", inference(model)) for model in MODELS),
    Workload(f"generate {TOKENS} tokens", generation),
]
