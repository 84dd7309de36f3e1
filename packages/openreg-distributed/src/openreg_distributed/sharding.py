# SPDX-License-Identifier: BSD-3-Clause
"""Registers DTensor's sharding rules for operators that PyTorch decomposes on other devices.

``openreg-ops`` runs ``torch.nn.functional.linear`` as one operator, whose derivative is ``aten::linear_backward``, and
attention as the operator that PyTorch reserves for a device's own implementation. PyTorch has rules for the operators
into which it decomposes them on other devices. A rule is one possible sharding along one dimension of a mesh: the
placements of the results and those of the operands, with None for an argument that is not a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

# The placements of the results, and those of the operands.
Rule = tuple[list[Any], list[Any]]

aten = torch.ops.aten


@register_sharding(aten.linear_backward.default)  # type: ignore[untyped-decorator]
def linear_backward(inputs: Any, _gradient: Any, _weight: Any, output_mask: Sequence[bool]) -> list[Rule]:
    """Returns the rules for the gradients of input, weight and bias. ``output_mask`` may exclude some of them."""
    last = inputs.ndim - 1
    rules: list[Rule] = [
        ([Replicate(), Replicate(), Replicate()], [Replicate(), Replicate(), Replicate()]),
        # Column-parallel: the output features are divided.
        ([Partial(), Shard(0), Shard(0)], [Replicate(), Shard(last), Shard(0)]),
        # Row-parallel: the input features are divided.
        ([Shard(last), Shard(1), Replicate()], [Shard(last), Replicate(), Shard(1)]),
        # The operator is linear in the gradient.
        ([Partial(), Partial(), Partial()], [Replicate(), Partial(), Replicate()]),
    ]
    # Data or sequence parallel: the rows are divided.
    rules += [([Shard(i), Partial(), Partial()], [Shard(i), Shard(i), Replicate()]) for i in range(last)]
    return [
        ([one if wanted else None for one, wanted in zip(results, output_mask, strict=True)], [*operands, None])
        for results, operands in rules
    ]


class _Attention:
    """The dimensions that a call of attention may shard, and the placement of its operands and results then."""

    def __init__(self, query: Any, key: Any, mask: Any) -> None:
        """Takes query and key (batch, heads, length, width), or without batch, and a mask, broadcast to the scores."""
        self.dims = query.ndim
        self.mask = mask
        heads, shared = query.shape[-3], key.shape[-3]
        divide_alike = heads == shared or all(shared % size == 0 for size in query.mesh.shape)
        # Dimensions counted from the end: heads and batch.
        self.divisible = [3] * divide_alike + [4] * (self.dims == 4)

    def placement(self, divided: int | None) -> Any:
        """Returns the placement of query, key, value, output and their gradients."""
        return Replicate() if divided is None else Shard(self.dims - divided)

    def of_statistics(self, divided: int | None) -> Any:
        """Returns the placement of the log-sum-exp, which is (batch, heads, length)."""
        return Replicate() if divided is None else Shard(4 - divided)

    def of_mask(self, divided: int | None) -> Any:
        """Returns the placement of the mask, which is replicated along a dimension that it lacks or broadcasts."""
        if self.mask is None:
            return None
        is_divided = divided is not None and self.mask.ndim >= divided and self.mask.shape[-divided] != 1
        return Shard(self.mask.ndim - divided) if is_divided else Replicate()


@register_sharding(aten._scaled_dot_product_fused_attention_overrideable.default)  # type: ignore[untyped-decorator]
def attention(query: Any, key: Any, _value: Any, mask: Any = None, *_options: Any, **_keywords: Any) -> list[Rule]:
    """Returns rules that shard the batch or the heads; one rank computes each head."""
    call = _Attention(query, key, mask)
    given = [call.of_mask] if mask is not None else []

    def rule(divided: int | None) -> Rule:
        placed = call.placement(divided)
        # Output, log-sum-exp, four results that are absent or numbers, the random state, and an absent debug mask.
        results = [placed, call.of_statistics(divided), None, None, None, None, Replicate(), Replicate(), None]
        return results, [placed, placed, placed, *(one(divided) for one in given)]

    return [rule(divided) for divided in [None, *call.divisible]]


@register_sharding(aten._scaled_dot_product_fused_attention_overrideable_backward.default)  # type: ignore[untyped-decorator]
def attention_backward(
    _gradient: Any, query: Any, key: Any, _value: Any, mask: Any, wanted: Sequence[bool], *_rest: Any, **_keywords: Any
) -> list[Rule]:
    """Returns the rules for the gradients of query, key, value and mask. ``wanted`` may exclude some of them."""
    call = _Attention(query, key, mask)

    def rule(divided: int | None) -> Rule:
        placed, of_mask = call.placement(divided), call.of_mask(divided)
        # The gradient of a mask is a sum over the heads or samples to which it broadcasts.
        of_mask_gradient = Partial() if divided is not None and isinstance(of_mask, Replicate) else of_mask
        results = [placed, placed, placed, of_mask_gradient]
        operands = [placed] * 4 + [of_mask] * (mask is not None) + [placed, call.of_statistics(divided)]
        random_state = [Replicate(), Replicate()]
        return (
            [one if is_wanted else None for one, is_wanted in zip(results, wanted, strict=True)],
            operands + random_state,
        )

    return [rule(divided) for divided in [None, *call.divisible]]
