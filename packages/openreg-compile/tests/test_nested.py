# SPDX-License-Identifier: BSD-3-Clause
"""A model on nested tensors of layout torch.jagged compiles to one graph for all lengths."""

import copy

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore:::torch")  # of what PyTorch itself calls


class Block(nn.Module):
    """Attention behind a norm, and a layer."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.projections = nn.Linear(8, 24)
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        parts = self.projections(self.norm(x)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in parts)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + nn.functional.gelu(self.layer(attended.transpose(1, 2).flatten(-2)))


def learned(model, lengths):
    """Results and gradients."""
    torch.manual_seed(sum(lengths))
    parts = [torch.randn(length, 8) for length in lengths]
    result = model(torch.nested.nested_tensor(parts, layout=torch.jagged, device="openreg")).values()
    model.zero_grad()
    result.square().mean().backward()
    return [result.detach(), *(parameter.grad for parameter in model.parameters())]


@pytest.mark.no_fallback
def test_a_block_on_ragged_batches_is_one_graph_for_all_lengths():
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = Block().to("openreg")
    compiled = torch.compile(copy.deepcopy(model), fullgraph=True)
    compilations = []
    for lengths in ((5, 9, 3), (4, 4, 7, 3), (8, 2), (3, 2, 6)):  # no 1, for which PyTorch makes a graph of its own
        torch.testing.assert_close(learned(compiled, lengths), learned(model, lengths), rtol=1e-4, atol=1e-5)
        compilations.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    # The second batch shows which sizes change, and its graph serves all others.
    assert 0 < compilations[1] == compilations[-1]
