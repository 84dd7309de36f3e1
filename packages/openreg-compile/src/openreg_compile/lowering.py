# SPDX-License-Identifier: BSD-3-Clause
"""How operators become loops (source: ``GraphLowering`` of Inductor): as they do for the CPU, whose loops ours are.

Inductor selects the lowerings that suit loops in C++ by the device's name, "cpu". This module selects them for openreg
nodes: by settings that hold while such a node is lowered, and by attributes of the graph, which change no other graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.graph import GraphLowering
from torch._inductor.ir import Pointwise, Reduction, StorageBox, TensorBox
from torch._inductor.lowering import fallbacks
from torch._inductor.virtualized import V
from torch.fx import GraphModule, Node

from openreg_compile.rewriting import is_ours

_aten = torch.ops.aten

# Functions that take long: what contains one and has several readers is computed once.
_HEAVY = frozenset({"exp", "log", "log10", "log1p", "log2", "sigmoid", "tanh"})


def lower_as_for_cpu(gm: GraphModule) -> None:
    """Puts a node in front of a graph's operators, at which Inductor learns of the others."""
    first = next(node for node in gm.graph.nodes if node.op != "placeholder")
    with gm.graph.inserting_before(first):
        node = gm.graph.call_function(_prepare)
        node.meta["val"] = None  # the node has no result; torch 2.14 and later require an entry
    gm.recompile()


@torch.fx.node.has_side_effect
def _prepare() -> None:
    """Prepares the graph where Inductor calls it to lower its node; does nothing where the graph is traced or run."""
    if isinstance(V.graph, GraphLowering):
        _prepare_graph(V.graph)


_prepare._inductor_lowering_function = True  # type: ignore[attr-defined]


def _prepare_graph(graph: Any) -> None:
    """Changes what one graph does with its nodes, and with the branches of ``torch.cond`` and the like in it."""
    if isinstance(graph.run_node, _RunNode):
        return
    if not graph.layout_opt and _prefers_channels_last(graph.module):
        graph.layout_opt = True
        graph.nodes_prefer_channels_last = graph.find_nodes_prefer_channels_last()
    graph.run_node = _RunNode(graph)
    make_subgraph = graph.make_subgraph

    def make_prepared(*args: Any, **kwargs: Any) -> Any:
        subgraph = make_subgraph(*args, **kwargs)
        _prepare_graph(subgraph)
        return subgraph

    graph.make_subgraph = make_prepared


class _RunNode:
    """Lowers a node: one of our device with what holds for the CPU."""

    def __init__(self, graph: GraphLowering) -> None:
        self._graph = graph
        self._run_node: Callable[[Node], Any] = graph.run_node

    def __call__(self, node: Node) -> Any:
        if node.op != "call_function" or not is_ours(node):
            return self._run_node(node)
        with config.patch(_settings(node)), _scalars_on_the_device(node, self._graph.env):
            result = self._run_node(node)
        if len(node.users) > 1 and _is_heavy(result):
            result.realize()
        return result


@contextlib.contextmanager
def _scalars_on_the_device(node: Node, environment: dict[Node, Any]) -> Iterator[None]:
    """Has loops take tensors of the host without dimensions, which may stand beside ours, for the device's.

    Inductor takes a result's device from the first operand, unless one is on a GPU that it knows. The loops still read
    these numbers from the host, and an operator that is called gets them as they are.
    """
    operands = {given: given.meta.get("val") for given in node.all_input_nodes}
    tensors = {given: value for given, value in operands.items() if isinstance(value, torch.Tensor)}
    device = next((value.device for value in tensors.values() if value.device.type == "openreg"), None)
    known = {}
    if device is not None and isinstance(node.target, torch._ops.OpOverload) and node.target not in fallbacks:
        scalars = [given for given, value in tensors.items() if value.device.type == "cpu" and value.dim() == 0]
        known = {given: environment[given] for given in scalars}
    for given, value in known.items():
        environment[given] = Pointwise.create(
            device=device, dtype=value.get_dtype(), inner_fn=value.make_loader(), ranges=[]
        )
    try:
        yield
    finally:
        environment.update(known)


def _prefers_channels_last(gm: GraphModule) -> bool:
    """Whether there is a convolution of ours: oneDNN's are faster so, and so are loops over images between them."""
    return (
        config.layout_optimization
        and torch.backends.mkldnn.is_available()
        and any(node.target is _aten.convolution.default and is_ours(node) for node in gm.graph.nodes)
    )


def _settings(node: Node) -> dict[str, Any]:
    """What Inductor sets for the CPU."""
    settings: dict[str, Any] = {}
    if config.realize_opcount_threshold is None:
        settings["realize_opcount_threshold"] = config.realize_cpu_opcount_threshold
    if config.realize_acc_reads_threshold is None:
        settings["realize_acc_reads_threshold"] = config.realize_cpu_acc_reads_threshold
    if node.target is _aten.cat.default:  # each part by a loop of its own: one loop with conditions is not vectorised
        settings.update(max_pointwise_cat_inputs=0, max_complex_pointwise_cat_inputs=0)
    return settings


def _is_heavy(result: Any) -> bool:
    """Whether a result that is not stored takes much time to compute again."""
    storage = result.data if isinstance(result, TensorBox) else None
    data = storage.data if isinstance(storage, StorageBox) else None
    return isinstance(data, Pointwise | Reduction) and not _HEAVY.isdisjoint(data.inner_fn_opcount().used_ops)
