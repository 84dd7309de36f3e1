# SPDX-License-Identifier: BSD-3-Clause
"""Adds context parallel attention, in which each rank has a part of the sequence.

``torch.distributed.tensor.experimental.context_parallel`` uses it. PyTorch has ring attention for any operator that
returns its log-sum-exp, and a private table of the operators for which it is used. This module adds the device's
operator to that table.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Shard
from torch.utils import _pytree as pytree

LENGTH = 2  # The index of the sharded dimension of (batch, heads, length, width).

_forward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
_backward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward


def _mesh_of(query: Any) -> Any:
    """Returns the mesh of a query that is sharded along the length. Raises NotImplementedError for other placements."""
    if query.device_mesh.ndim != 1 or query.placements != (Shard(LENGTH),):
        raise NotImplementedError(
            f"openreg: context parallel attention got a query placed {query.placements} on {query.device_mesh}; it "
            "takes (batch, heads, length, width) divided along the length, on a mesh of one dimension: divide heads or "
            "batch outside of context_parallel()"
        )
    return query.device_mesh


def _local(values: Any) -> Any:
    return pytree.tree_map_only(DTensor, lambda tensor: tensor.to_local(), values)


def _sharded(tensor: torch.Tensor, mesh: Any) -> DTensor:
    return DTensor.from_local(tensor, mesh, (Shard(LENGTH),), run_check=False)


def _make_handlers(ring: ModuleType) -> dict[Any, Any]:
    """Returns the functions that DTensor calls instead of the two operators inside ``context_parallel()``."""

    def attention(_op: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
        mesh = _mesh_of(args[0])
        query, key, value, *options = _local(args)
        mask, dropout, is_causal = [*options, *[None, 0.0, False][len(options) :]][:3]
        if mask is not None:
            raise NotImplementedError(
                "openreg: context parallel attention takes no mask; use is_causal, or attention outside of it"
            )
        output, sums, *rest = ring._templated_ring_attention(
            mesh.get_group(), LENGTH, _forward, query, key, value, is_causal=is_causal, dropout_p=dropout, **kwargs
        )
        return _sharded(output, mesh), _sharded(sums, mesh), *rest

    def attention_backward(_op: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
        mesh = _mesh_of(args[1])
        names = [argument.name for argument in _backward.default._schema.arguments]
        call = {**dict(zip(names, _local(args), strict=False)), **kwargs}
        results = ring._templated_ring_attention_backward(
            mesh.get_group(), LENGTH, _backward.default, grad_out_name="grad_out", **call
        )
        return *(_sharded(gradient, mesh) for gradient in results[:3]), None

    return {_forward.default: attention, _backward.default: attention_backward}


def enter(ring: ModuleType) -> None:
    """Adds the device's attention operator to the table of PyTorch's module ``ring``."""
    ring.custom_ops.update(_make_handlers(ring))
