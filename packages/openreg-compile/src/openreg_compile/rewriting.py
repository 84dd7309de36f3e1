# SPDX-License-Identifier: BSD-3-Clause
"""Rewrites operators of a graph before Inductor lowers them, where Inductor has a good lowering for the CPU only.

The graph is the result of AOTAutograd, which replaces in-place operators by functional ones. So no value changes
between its computation and its use, and an operator can be replaced without regard to views.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

_aten = torch.ops.aten


def rewrite(gm: GraphModule) -> None:
    """Rewrites the nodes of openreg devices in a graph."""
    for node in list(gm.graph.nodes):
        function = _REWRITTEN.get(node.target)
        if function is not None and is_ours(node):
            with gm.graph.inserting_before(node):
                function(node)


def is_ours(node: Node) -> bool:
    """Returns True if a result of a node is a tensor on an openreg device."""
    values = pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(value, torch.Tensor) and value.device.type == "openreg" for value in values)


def _call(graph: torch.fx.Graph, target: Any, *args: Any) -> Node:
    """Inserts a call node with the fake tensor of its result, which Inductor requires."""
    node = graph.call_function(target, args)

    def value(argument: Any) -> Any:
        return argument.meta["val"] if isinstance(argument, Node) else argument

    with V.fake_mode:
        node.meta["val"] = target(*pytree.tree_map(value, args))
    return node


def _flatten_arg_reduction(node: Node) -> None:
    """Rewrites argmax or argmin of a whole tensor as that of a flattened tensor.

    Otherwise the result would be the index of a loop step, and loops may run over the dimensions in any order.
    """
    source: Any = node.args[0]
    dim = _dims(node)
    if dim is not None or source.meta["val"].dim() < 2:
        return
    result = _call(node.graph, node.target, _call(node.graph, _aten.reshape.default, source, [-1]), 0)
    if node.meta["val"].dim() > 0:  # keepdim=True
        result = _call(node.graph, _aten.reshape.default, result, [1] * node.meta["val"].dim())
    node.replace_all_uses_with(result)
    node.graph.erase_node(node)


def _variance_in_two_steps(node: Node) -> None:
    """Rewrites var_mean of few numbers as a mean and a sum of squares. Welford's algorithm divides at each step."""
    source: Any = node.args[0]
    dims = _dims(node)
    correction: Any = node.kwargs.get("correction")
    keepdim = bool(node.kwargs.get("keepdim", False))
    count = _count(source.meta["val"], dims)
    if count is None or not all(user.target is operator.getitem for user in node.users):
        return
    mean = _call(node.graph, _aten.mean.dim, source, dims, True)
    distance = _call(node.graph, _aten.sub.Tensor, source, mean)
    squares = _call(node.graph, _aten.mul.Tensor, distance, distance)
    total = _call(node.graph, _aten.sum.dim_IntList, squares, dims, keepdim)
    degrees = max(count - (1 if correction is None else correction), 0)
    variance = _call(node.graph, _aten.div.Tensor, total, degrees)
    if not keepdim:
        mean = _call(node.graph, _aten.squeeze.dims, mean, dims)
    for user in list(node.users):
        user.replace_all_uses_with(mean if user.args[1] else variance)
        node.graph.erase_node(user)
    node.graph.erase_node(node)


def _scatter_by_operator(node: Node) -> None:
    """Rewrites scatter_add and sums of scatter_reduce as a call of the operator, which Inductor then does not lower.

    Inductor does so for the CPU, because its parallel loops would use atomic additions.
    """
    reduce = node.args[4] if len(node.args) > 4 else node.kwargs.get("reduce", "sum")
    include_self = node.kwargs.get("include_self", True)
    if reduce != "sum" or len(node.args) < 4:
        return
    if not config.cpp.fallback_scatter_reduce_sum or torch.get_num_threads() == 1:
        return
    new = node.graph.call_function(_sum_at_indices, (*node.args[:4], include_self))
    new.meta.update(node.meta)
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)


def _sum_at_indices(into: Any, dim: int, index: Any, source: Any, include_self: bool) -> Any:
    """Lowers a sum at indices if Inductor lowers the graph. Runs the operator if the graph is traced or run."""
    if not isinstance(V.graph, GraphLowering):
        return _aten.scatter_reduce.two(into, dim, index, source, "sum", include_self=include_self)
    from torch._inductor import ir
    from torch._inductor.lowering import clone

    result = clone(into)
    call = _aten.scatter_reduce_.two
    ir.ScatterFallback(call, result, dim, index, source, reduce="sum", include_self=include_self)
    return result


_sum_at_indices._inductor_lowering_function = True  # type: ignore[attr-defined]


def _dims(node: Node) -> Any:
    return node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")


def _count(value: torch.Tensor, dims: Sequence[int] | None) -> int | None:
    """Returns how many numbers are reduced to one, or None.

    None means that the number is unknown or above Inductor's threshold, or that the dtype is neither float32 nor
    float64.
    """
    sizes = [value.size(dim) for dim in dims or ()]
    if not sizes or value.dtype not in (torch.float32, torch.float64):
        return None
    if not all(isinstance(size, int) for size in sizes):
        return None
    count = math.prod(sizes)
    return count if 0 < count <= config.cpp.use_two_step_variance_threshold else None


_REWRITTEN: dict[Any, Callable[[Node], None]] = {
    _aten.argmax.default: _flatten_arg_reduction,
    _aten.argmin.default: _flatten_arg_reduction,
    _aten.scatter_add.default: _scatter_by_operator,
    _aten.scatter_reduce.two: _scatter_by_operator,
    _aten.var_mean.correction: _variance_in_two_steps,
}
