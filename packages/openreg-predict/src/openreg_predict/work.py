# SPDX-License-Identifier: BSD-3-Clause
"""What one call of an operator has to do: its class, FLOP, bytes and, of matrix products, the sizes.

FLOP are those of ``torch.utils.flop_counter``; operators it does not know do one per element of their results, which
never decides on a chip. Bytes are those of the distinct elements of operands and results.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree
from torch.utils.flop_counter import flop_registry

from openreg_predict import operator_classes


@dataclass(frozen=True)
class Work:
    """Of one call.

    ``product`` is (batch, rows, columns, depth) of a matrix product; ``kernels`` are launched. Over a link ``size`` is
    what one member sends, in so many ``messages`` one after the other.
    """

    kind: str
    dtype: str = "float32"
    unit: str = "vector"
    flops: int = 0
    size: int = 0  # bytes that memory has to move
    product: tuple[int, int, int, int] | None = None
    kernels: int = 1
    link: str = ""  # "host" of a copy between host and device, "peer" of a collective
    messages: int = 1
    has_rule: bool = True


@dataclass(frozen=True)
class _Seen:
    """A call as a rule sees it."""

    name: str
    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any
    operands: list[Tensor]
    results: list[Tensor]


NOTHING = Work("nothing", kernels=0)


def name_of(function: Any) -> str:
    """``aten::add`` of ``aten.add.Tensor``."""
    return str(function._schema.name)


def moved(tensor: Tensor) -> int:
    """Bytes of the distinct elements of a tensor; what was expanded counts once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if tensor.layout == torch.strided else ():
        count *= 1 if stride == 0 else size
    if tensor.layout != torch.strided:
        count = tensor.numel()
    return int(count * tensor.element_size())


def tensors(tree: object) -> list[Tensor]:
    """All tensors in arguments or results."""
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def describe(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Work:
    """The work of a call of an operator of the dispatcher, from shapes and dtypes alone."""
    name = name_of(function)
    if operator_classes.is_free(function, name):
        return NOTHING
    operands, results = tensors((args, kwargs)), tensors(result)
    involved = operands + results
    if not involved:
        return NOTHING
    rule = _attention if _ATTENTION.match(name) else _RULES.get(name)
    if rule is not None:
        return rule(_Seen(name, function, args, kwargs, result, operands, results))
    kind = operator_classes.class_of(function, name)
    reads, writes = _bytes(function, args, kwargs, results)
    return Work(
        kind or "elementwise",
        dtype=_dtype(results or operands),
        flops=operator_classes.flops_per_element(name) * max(tensor.numel() for tensor in involved),
        size=reads + writes,
        kernels=operator_classes.kernels_of(name, len(operands)),
        has_rule=kind is not None,
    )


def _dtype(found: list[Tensor]) -> str:
    floating = [tensor for tensor in found if tensor.is_floating_point() or tensor.is_complex()]
    return str((floating or found)[0].dtype).removeprefix("torch.")


def _bytes(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], results: list[Tensor]) -> tuple[int, int]:
    """(read, written): operands that the schema updates are both, unless the operator only fills them."""
    updated: list[Tensor] = []
    given: list[Tensor] = []
    for index, argument in enumerate(function._schema.arguments):
        value = args[index] if index < len(args) else kwargs.get(argument.name)
        found = tensors(value)
        if argument.alias_info is not None and argument.alias_info.is_write:
            updated += found
            if not argument.is_out and not operator_classes.only_fills(name_of(function)):
                given += found
        else:
            given += found
    seen = {id(tensor) for tensor in updated}
    written = updated + [tensor for tensor in results if id(tensor) not in seen]
    distinct = {id(tensor): tensor for tensor in given}
    return sum(map(moved, distinct.values())), sum(moved(tensor) for tensor in {id(t): t for t in written}.values())


def _counted(seen: _Seen) -> int:
    counter: Callable[..., int] = flop_registry[seen.function.overloadpacket]
    return int(counter(*seen.args, **seen.kwargs, out_val=seen.result))


def _product(seen: _Seen) -> Work:
    """mm, bmm and what adds to them: the two factors are the last two tensors."""
    left, right = [item for item in seen.args if isinstance(item, Tensor)][-2:]
    batch = left.shape[0] if left.dim() == 3 else 1
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    inputs = seen.operands
    return Work(
        "batched_matmul" if left.dim() == 3 else "matmul",
        _dtype([left]),
        "matrix",
        2 * batch * rows * columns * depth,
        sum(map(moved, inputs)) + sum(map(moved, seen.results)),
        (batch, rows, columns, depth),
    )


def _narrow_product(seen: _Seen) -> Work:
    """Products of float8 or int8 with scales of their own, which give a wider dtype."""
    left, right = seen.args[:2]
    rows, depth, columns = left.shape[0], left.shape[1], right.shape[1]
    size = sum(map(moved, seen.operands)) + sum(map(moved, seen.results))
    dtype = str(left.dtype).removeprefix("torch.")
    return Work("matmul", dtype, "matrix", 2 * rows * columns * depth, size, (1, rows, columns, depth))


def _linear(seen: _Seen) -> Work:
    """A linear layer as one operator: its weight is (columns, depth)."""
    source, weight = seen.args[0], seen.args[1]
    columns, depth = weight.shape
    rows = source.numel() // max(1, depth)
    size = sum(map(moved, seen.operands)) + sum(map(moved, seen.results))
    return Work("matmul", _dtype([source]), "matrix", 2 * rows * columns * depth, size, (1, rows, columns, depth))


def _linear_backward(seen: _Seen) -> Work:
    """Returns the work of the requested gradients, of input, weight and bias."""
    source, gradient, weight, wanted = seen.args
    columns, depth = weight.shape
    rows = source.numel() // max(1, depth)
    products = int(wanted[0]) + int(wanted[1])
    size = products * moved(gradient) + moved(source) + moved(weight) + sum(map(moved, seen.results))
    flops = 2 * products * rows * columns * depth
    return Work(
        "matmul", _dtype([source]), "matrix", flops, size, (max(1, products), rows, depth, columns), sum(wanted)
    )


def _recurrent(seen: _Seen) -> Work:
    """A recurrent layer: in each step a product with the weights of the input and one with those of the state."""
    source, of_input, of_state = seen.args[:3]
    length, batch, inputs = source.shape
    columns, width = of_state.shape
    passes = 2 if "backward" in seen.name else 1
    size = sum(map(moved, seen.operands)) + sum(map(moved, seen.results))
    flops = 2 * passes * length * batch * columns * (inputs + width)
    product = (1, batch, columns, inputs + width)
    return Work("matmul", _dtype([of_input]), "matrix", flops, size, product, kernels=passes * length)


def _vector_product(seen: _Seen) -> Work:
    """mv, dot and the like: bound by memory."""
    inputs = seen.operands
    elements = max(tensor.numel() for tensor in inputs)
    size = sum(map(moved, inputs)) + sum(map(moved, seen.results))
    return Work("reduction", _dtype(inputs), "vector", 2 * elements, size)


def _convolution(seen: _Seen) -> Work:
    """The matrix product that a convolution is: outputs by channels, of a depth of inputs times window."""
    source, weight = seen.args[0], seen.args[1]
    size = sum(map(moved, seen.operands)) + sum(map(moved, seen.results))
    flops = _counted(seen)
    groups = int(seen.args[8])
    channels = weight.shape[0] // groups
    depth = math.prod(weight.shape[1:])
    rows = max(1, flops // max(1, 2 * groups * channels * depth))
    return Work("convolution", _dtype([source]), "matrix", flops, size, (groups, rows, channels, depth))


def _convolution_backward(seen: _Seen) -> Work:
    gradient, source, weight = seen.args[0], seen.args[1], seen.args[2]
    wanted = list(seen.args[10])
    flops = _counted(seen)
    size = moved(gradient) * sum(wanted) + moved(source) + moved(weight) + sum(map(moved, seen.results))
    groups = int(seen.args[9])
    channels, depth = weight.shape[0] // groups, math.prod(weight.shape[1:])
    rows = max(1, flops // max(1, 2 * groups * channels * depth))
    return Work(
        "convolution", _dtype([source]), "matrix", flops, size, (groups, rows, channels, depth), kernels=sum(wanted)
    )


def _attention(seen: _Seen) -> Work:
    """Fused attention: scores stay in caches, so memory moves operands and results alone."""
    inputs = seen.operands
    size = sum(map(moved, inputs)) + sum(map(moved, seen.results))
    is_backward = "backward" in seen.name
    if seen.function.overloadpacket in flop_registry:
        flops = _counted(seen)
    else:  # two products forward, five backward; the counter does not know the CPU's
        query, key, value = [tensor for tensor in inputs if tensor.dim() == 4][is_backward : 3 + is_backward]
        batch, heads, rows, width = query.shape
        product = 2 * batch * heads * rows * key.shape[-2]
        flops = product * (3 * width + 2 * value.shape[-1] if is_backward else width + value.shape[-1])
    return Work("attention", _dtype(inputs), "matrix", flops, size, kernels=2 if is_backward else 1)


def _embedding(seen: _Seen) -> Work:
    """Reads the rows that the indices name, not the table."""
    written = seen.results
    indices = [tensor for tensor in seen.operands if not tensor.is_floating_point()]
    size = 2 * sum(map(moved, written)) + sum(map(moved, indices))
    return Work("embedding", _dtype(written), flops=0, size=size)


def _embedding_backward(seen: _Seen) -> Work:
    """Clears the table's gradient, then adds a row per index: sorted, read and written."""
    gradient, indices = seen.args[0], seen.args[1]
    size = sum(map(moved, seen.results)) + 3 * moved(gradient) + 8 * moved(indices)
    return Work("embedding", _dtype([gradient]), flops=gradient.numel(), size=size, kernels=8)


def _norm_backward(seen: _Seen) -> Work:
    """One pass for the input's gradient, a second over the same operands for those of weight and bias."""
    inputs, outputs = seen.operands, seen.results
    passes = 2 if len(outputs) > 1 else 1
    size = passes * sum(map(moved, inputs)) + sum(map(moved, outputs))
    return Work("normalization", _dtype(inputs), flops=8 * inputs[0].numel(), size=size, kernels=passes)


def _copy(seen: _Seen) -> Work:
    """A copy on the device, or over the link where one side is the host."""
    if seen.name == "aten::copy_":
        target, source = seen.args[:2]
        crosses = (target.device.type == "cpu") != (source.device.type == "cpu")
    else:
        source = seen.args[0]
        target = seen.results[0] if seen.results else source  # before it has run: a copy to the host, which waits
        crosses = not seen.results or (target.device.type == "cpu") != (source.device.type == "cpu")
    size = moved(target) if crosses else moved(source) + moved(target)
    return Work("copy", _dtype([target]), size=size, link="host" if crosses else "")


def _one_number(seen: _Seen) -> Work:
    """A number that goes to the host."""
    return Work("copy", _dtype(seen.operands), size=seen.operands[0].element_size(), link="host")


def _collective(rounds: int) -> Callable[..., Work]:
    """Of a ring: in each round every member passes on all parts but one, one message per part.

    0: one message with all of it, to whoever waits for it.
    """

    def rule(seen: _Seen) -> Work:
        members = _group_size(seen)
        # What is gathered or scattered is the larger of an operator's arguments.
        size = max(sum(map(moved, tensors(part))) for part in (*seen.args, seen.result))
        messages = rounds * (members - 1)
        own = size * messages // members if rounds else size
        return Work("copy", _dtype(seen.operands + seen.results), size=own, link="peer", messages=messages or 1)

    return rule


def _group_size(seen: _Seen) -> int:
    """Members of the group of a collective, which is an object (c10d) or a name (functional collectives)."""
    for index, argument in enumerate(seen.function._schema.arguments):
        value = seen.args[index] if index < len(seen.args) else seen.kwargs.get(argument.name)
        if argument.name == "process_group":
            return int(torch.distributed.ProcessGroup.unbox(value).size())  # type: ignore[arg-type]
        if argument.name == "group_name":
            return int(_resolve_process_group(str(value)).size())
    raise NotImplementedError(f"{seen.name}: no argument of a collective says how many take part")


def _resolve_process_group(name: str) -> Any:
    from torch._C._distributed_c10d import _resolve_process_group as resolve

    return resolve(name)  # type: ignore[arg-type]


_ATTENTION = re.compile(r"aten::_?(scaled_dot_product|(flash|efficient)_attention)")
_RULES: dict[str, Callable[..., Work]] = {
    **dict.fromkeys(("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation"), _product),
    **dict.fromkeys(("aten::_scaled_mm", "aten::_int_mm"), _narrow_product),
    **dict.fromkeys(("aten::mv", "aten::addmv", "aten::dot", "aten::vdot"), _vector_product),
    **dict.fromkeys(("aten::convolution", "aten::_convolution"), _convolution),
    "aten::mkldnn_rnn_layer": _recurrent,
    "aten::mkldnn_rnn_layer_backward": _recurrent,
    **dict.fromkeys(("aten::linear", "openreg_predict::linear"), _linear),
    **dict.fromkeys(("aten::linear_backward", "openreg_predict::linear_backward"), _linear_backward),
    "aten::convolution_overrideable": _convolution,
    "aten::convolution_backward": _convolution_backward,
    "aten::embedding": _embedding,
    "aten::index_select": _embedding,
    "aten::index": _embedding,
    "aten::gather": _embedding,
    "aten::embedding_dense_backward": _embedding_backward,
    **dict.fromkeys(
        (
            "aten::native_layer_norm_backward",
            "aten::native_batch_norm_backward",
            "aten::native_group_norm_backward",
            "aten::_fused_rms_norm_backward",
        ),
        _norm_backward,
    ),
    **dict.fromkeys(("aten::copy_", "aten::_to_copy"), _copy),
    "aten::_local_scalar_dense": _one_number,
    **dict.fromkeys(
        ("c10d::allreduce_", "_c10d_functional::all_reduce", "_c10d_functional::all_reduce_"),
        _collective(2),
    ),
    **dict.fromkeys(
        (
            "c10d::allgather_",
            "c10d::_allgather_base_",
            "c10d::reduce_scatter_",
            "c10d::_reduce_scatter_base_",
            "c10d::alltoall_",
            "c10d::alltoall_base_",
            "_c10d_functional::all_gather_into_tensor",
            "_c10d_functional::reduce_scatter_tensor",
            "_c10d_functional::all_to_all_single",
        ),
        _collective(1),
    ),
    **dict.fromkeys(
        ("c10d::broadcast_", "c10d::reduce_", "c10d::send", "c10d::recv_", "_c10d_functional::broadcast"),
        _collective(0),
    ),
}
