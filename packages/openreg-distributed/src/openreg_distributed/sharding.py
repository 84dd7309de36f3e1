# SPDX-License-Identifier: BSD-3-Clause
"""How DTensor may shard operators that only this device has as one piece.

``openreg-ops`` runs ``torch.nn.functional.linear`` as one operator, whose derivative is ``aten::linear_backward``;
PyTorch's rules know the matrix products into which it falls apart elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding


@register_sharding(torch.ops.aten.linear_backward.default)  # type: ignore[untyped-decorator]
def linear_backward(
    inputs: Any, _gradient: Any, _weight: Any, output_mask: Sequence[bool]
) -> list[tuple[list[Any], list[Any]]]:
    """What may be sharded along one dimension of a mesh: the results, and what they are made from.

    The results are the gradients of the input, the weight and the bias, of which the mask may leave out some.
    """
    last = inputs.ndim - 1
    rules: list[tuple[list[Any], list[Any]]] = [
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
