# SPDX-License-Identifier: BSD-3-Clause
"""How DTensor may shard operators that only this device has as one piece.

``openreg-ops`` runs ``torch.nn.functional.linear`` as one operator, whose derivative is ``aten::linear_backward``, and
attention as the operator that PyTorch keeps for a device's own form. PyTorch's rules know the operators into which
these fall apart elsewhere, and the forms of other devices. A rule is a list of what is possible along one dimension of
a mesh: the placements of the results, and those of the operands, where None stands for what is no tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

Rule = tuple[list[Any], list[Any]]

aten = torch.ops.aten


@register_sharding(aten.linear_backward.default)  # type: ignore[untyped-decorator]
def linear_backward(inputs: Any, _gradient: Any, _weight: Any, output_mask: Sequence[bool]) -> list[Rule]:
    """The results are the gradients of the input, the weight and the bias, of which the mask may leave out some."""
    last = inputs.ndim - 1
    rules: list[Rule] = [
        ([Replicate(), Replicate(), Replicate()], [Replicate(), Replicate(), Replicate()]),
        # The outputs are divided, as in a column-parallel layer.
        ([Partial(), Shard(0), Shard(0)], [Replicate(), Shard(last), Shard(0)]),
        # The inputs are divided, as in a row-parallel layer.
        ([Shard(last), Shard(1), Replicate()], [Shard(last), Replicate(), Shard(1)]),
        # It is linear in the gradient.
        ([Partial(), Partial(), Partial()], [Replicate(), Partial(), Replicate()]),
    ]
    # The rows are divided, as where data or a sequence is.
    rules += [([Shard(i), Partial(), Partial()], [Shard(i), Shard(i), Replicate()]) for i in range(last)]
    return [
        ([one if wanted else None for one, wanted in zip(results, output_mask, strict=True)], [*operands, None])
        for results, operands in rules
    ]


class _Attention:
    """Which dimensions of a call of attention may be divided, and how each operand is then."""

    def __init__(self, query: Any, key: Any, mask: Any) -> None:
        """Query and key are (batch, heads, length, width) or lack the batch; a mask broadcasts to the scores."""
        self.dims = query.ndim
        self.mask = mask
        heads, shared = query.shape[-3], key.shape[-3]
        divide_alike = heads == shared or all(shared % size == 0 for size in query.mesh.shape)
        # Counted from the end: the heads, and the batch.
        self.divisible = [3] * divide_alike + [4] * (self.dims == 4)

    def placement(self, divided: int | None) -> Any:
        """Of query, key, value, output and their gradients."""
        return Replicate() if divided is None else Shard(self.dims - divided)

    def of_statistics(self, divided: int | None) -> Any:
        """Of the logarithms of the sums, which are (batch, heads, length)."""
        return Replicate() if divided is None else Shard(4 - divided)

    def of_mask(self, divided: int | None) -> Any:
        """Of the mask, which lacks a dimension or has one element there where it is the same for all."""
        if self.mask is None:
            return None
        is_divided = divided is not None and self.mask.ndim >= divided and self.mask.shape[-divided] != 1
        return Shard(self.mask.ndim - divided) if is_divided else Replicate()


@register_sharding(aten._scaled_dot_product_fused_attention_overrideable.default)  # type: ignore[untyped-decorator]
def attention(query: Any, key: Any, _value: Any, mask: Any = None, *_options: Any, **_keywords: Any) -> list[Rule]:
    """The batch or the heads are divided; each head is computed by one process."""
    call = _Attention(query, key, mask)
    given = [call.of_mask] if mask is not None else []

    def rule(divided: int | None) -> Rule:
        placed = call.placement(divided)
        # The output, its statistics, four that are absent or numbers, the random state, and a mask that is absent.
        results = [placed, call.of_statistics(divided), None, None, None, None, Replicate(), Replicate(), None]
        return results, [placed, placed, placed, *(one(divided) for one in given)]

    return [rule(divided) for divided in [None, *call.divisible]]


@register_sharding(aten._scaled_dot_product_fused_attention_overrideable_backward.default)  # type: ignore[untyped-decorator]
def attention_backward(
    _gradient: Any, query: Any, key: Any, _value: Any, mask: Any, wanted: Sequence[bool], *_rest: Any, **_keywords: Any
) -> list[Rule]:
    """The gradients of query, key, value and mask, of which ``wanted`` may leave out some."""
    call = _Attention(query, key, mask)

    def rule(divided: int | None) -> Rule:
        placed, of_mask = call.placement(divided), call.of_mask(divided)
        # What a mask gives to several heads or samples is summed over them.
        of_mask_gradient = Partial() if divided is not None and isinstance(of_mask, Replicate) else of_mask
        results = [placed, placed, placed, of_mask_gradient]
        operands = [placed] * 4 + [of_mask] * (mask is not None) + [placed, call.of_statistics(divided)]
        random_state = [Replicate(), Replicate()]
        return (
            [one if is_wanted else None for one, is_wanted in zip(results, wanted, strict=True)],
            operands + random_state,
        )

    return [rule(divided) for divided in [None, *call.divisible]]
