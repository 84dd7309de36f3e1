# SPDX-License-Identifier: BSD-3-Clause
"""Lowers operators of openreg devices to loops as for the CPU, by changes to objects of Inductor's ``GraphLowering``.

Inductor selects the lowerings that suit C++ loops only for a device with the name "cpu". This module selects them for
nodes of openreg devices. It patches settings while such a node is lowered, and changes attributes of one graph, so that
other graphs do not change.
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

# Names in Inductor's IR of functions that are slow to compute. If a result contains one and several nodes read it, it
# is stored in memory (``realize()``), because each loop that reads it would otherwise compute it again.
_HEAVY = frozenset({"exp", "log", "log10", "log1p", "log2", "sigmoid", "tanh"})


def lower_as_for_cpu(gm: GraphModule) -> None:
    """Inserts a node before the operators of a graph. Its lowering changes how Inductor lowers the others."""
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
    """Changes how one graph lowers its nodes, and its subgraphs such as the branches of ``torch.cond``."""
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
    """A replacement of ``GraphLowering.run_node`` that lowers the nodes of openreg devices as for the CPU."""

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
    """Treats 0-dimensional CPU operands of a node as values of the device while the node is lowered to loops.

    Inductor uses the device of the first operand for the result, unless an operand is on a GPU that Inductor supports.
    The loops still read these values from the host. A fallback, which calls the operator, gets the tensors unchanged.
    """
    operands = {operand: operand.meta.get("val") for operand in node.all_input_nodes}
    tensors = {operand: value for operand, value in operands.items() if isinstance(value, torch.Tensor)}
    device = next((value.device for value in tensors.values() if value.device.type == "openreg"), None)
    originals = {}
    if device is not None and isinstance(node.target, torch._ops.OpOverload) and node.target not in fallbacks:
        numbers = [operand for operand, value in tensors.items() if value.device.type == "cpu" and value.dim() == 0]
        originals = {operand: environment[operand] for operand in numbers}
    for operand, value in originals.items():
        environment[operand] = Pointwise.create(
            device=device, dtype=value.get_dtype(), inner_fn=value.make_loader(), ranges=[]
        )
    try:
        yield
    finally:
        environment.update(originals)


def _prefers_channels_last(gm: GraphModule) -> bool:
    """Returns True if the graph has a convolution on an openreg device and oneDNN is available.

    With channels last, oneDNN's convolutions are faster, and so are the loops over images between them.
    """
    return (
        config.layout_optimization
        and torch.backends.mkldnn.is_available()
        and any(node.target is _aten.convolution.default and is_ours(node) for node in gm.graph.nodes)
    )


def _settings(node: Node) -> dict[str, Any]:
    """Returns the settings that Inductor uses for a node on the CPU, as far as the user has not set them."""
    settings: dict[str, Any] = {}
    if config.realize_opcount_threshold is None:
        settings["realize_opcount_threshold"] = config.realize_cpu_opcount_threshold
    if config.realize_acc_reads_threshold is None:
        settings["realize_acc_reads_threshold"] = config.realize_cpu_acc_reads_threshold
    if node.target is _aten.cat.default:  # a loop per part, because one loop with conditions is not vectorized
        settings.update(max_pointwise_cat_inputs=0, max_complex_pointwise_cat_inputs=0)
    return settings


def _is_heavy(result: Any) -> bool:
    """Returns True if a result is not stored and is slow to compute again."""
    storage = result.data if isinstance(result, TensorBox) else None
    data = storage.data if isinstance(storage, StorageBox) else None
    return isinstance(data, Pointwise | Reduction) and not _HEAVY.isdisjoint(data.inner_fn_opcount().used_ops)
