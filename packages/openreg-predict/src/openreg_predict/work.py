# SPDX-License-Identifier: BSD-3-Clause
"""Computes the work of an operator call: its class, FLOP, bytes and, for a matrix product, the sizes.

FLOP are those of ``torch.utils.flop_counter``. Other operators count an estimate per element of their largest tensor
(operator_classes.py). Bytes are those of the distinct elements of operands and results. A *rule* is a function of this
module that returns the work of an operator for which these estimates are wrong, such as a matrix product.
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
class OperatorWork:
    """The work of one operator call.

    ``kind`` is its class of operators (CLASSES of description.py), or "nothing" for a call that launches no kernel.
    ``unit`` is the arithmetic unit that does it, "matrix" or "vector". ``product`` is (batch, rows, columns, depth) of
    a matrix product, and ``kernels`` the number of launches. Over a link, ``size`` is the number of bytes that one rank
    sends, in ``messages`` consecutive messages.
    """

    kind: str
    dtype: str = "float32"
    unit: str = "vector"
    flops: int = 0
    size: int = 0  # bytes that memory has to move
    product: tuple[int, int, int, int] | None = None
    kernels: int = 1
    link: str = ""  # "host": copy between host and device; "peer": collective
    messages: int = 1
    is_known: bool = True  # False: no rule and no class; counted as elementwise


@dataclass(frozen=True)
class _Call:
    """A call of an operator, as a rule gets it. ``operands`` and ``results`` are its tensors."""

    name: str
    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any
    operands: list[Tensor]
    results: list[Tensor]


# The work of a call that launches no kernel, such as a view.
NOTHING = OperatorWork("nothing", kernels=0)


def name_of(function: Any) -> str:
    """Returns the name without overload, such as ``aten::add`` of ``aten.add.Tensor``."""
    return str(function._schema.name)


def distinct_bytes(tensor: Tensor) -> int:
    """Returns the bytes of the distinct elements of a tensor. An expanded dimension counts once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if tensor.layout == torch.strided else ():
        count *= 1 if stride == 0 else size
    if tensor.layout != torch.strided:
        count = tensor.numel()
    return int(count * tensor.element_size())


def tensors(tree: object) -> list[Tensor]:
    """Returns all tensors in nested arguments or results."""
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def describe(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> OperatorWork:
    """Returns the work of an operator call, which follows from shapes and dtypes alone."""
    name = name_of(function)
    if operator_classes.is_free(function, name):
        return NOTHING
    operands, results = tensors((args, kwargs)), tensors(result)
    involved = operands + results
    if not involved:
        return NOTHING
    rule = _attention if _ATTENTION.match(name) else _RULES.get(name)
    if rule is not None:
        return rule(_Call(name, function, args, kwargs, result, operands, results))
    kind = operator_classes.class_of(function, name)
    reads, writes = _bytes(function, args, kwargs, results)
    return OperatorWork(
        kind or "elementwise",
        dtype=_dtype(results or operands),
        flops=operator_classes.flops_per_element(name) * max(tensor.numel() for tensor in involved),
        size=reads + writes,
        kernels=operator_classes.kernels_of(name, len(operands)),
        is_known=kind is not None,
    )


def _dtype(found: list[Tensor]) -> str:
    """Returns the name of the dtype of the first floating-point or complex tensor, or else of the first tensor."""
    floating = [tensor for tensor in found if tensor.is_floating_point() or tensor.is_complex()]
    return str((floating or found)[0].dtype).removeprefix("torch.")


def _bytes(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], results: list[Tensor]) -> tuple[int, int]:
    """Returns the bytes read and the bytes written. An operand that the operator updates counts as both.

    An operand that the operator only fills counts as written.
    """
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
    updated_ids = {id(tensor) for tensor in updated}
    written = updated + [tensor for tensor in results if id(tensor) not in updated_ids]
    distinct = {id(tensor): tensor for tensor in given}
    return sum(map(distinct_bytes, distinct.values())), sum(
        distinct_bytes(tensor) for tensor in {id(t): t for t in written}.values()
    )


def _counted_flops(call: _Call) -> int:
    """Returns the FLOP that PyTorch's counter has for the call."""
    counter: Callable[..., int] = flop_registry[call.function.overloadpacket]
    return int(counter(*call.args, **call.kwargs, out_val=call.result))


def _product(call: _Call) -> OperatorWork:
    """Returns the work of mm, bmm, addmm and baddbmm, whose factors are the last two tensors."""
    left, right = [item for item in call.args if isinstance(item, Tensor)][-2:]
    batch = left.shape[0] if left.dim() == 3 else 1
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    inputs = call.operands
    return OperatorWork(
        "batched_matmul" if left.dim() == 3 else "matmul",
        _dtype([left]),
        "matrix",
        2 * batch * rows * columns * depth,
        sum(map(distinct_bytes, inputs)) + sum(map(distinct_bytes, call.results)),
        (batch, rows, columns, depth),
    )


def _narrow_product(call: _Call) -> OperatorWork:
    """Returns the work of a product of float8 or int8 tensors, whose result has a wider dtype."""
    left, right = call.args[:2]
    rows, depth, columns = left.shape[0], left.shape[1], right.shape[1]
    size = sum(map(distinct_bytes, call.operands)) + sum(map(distinct_bytes, call.results))
    dtype = str(left.dtype).removeprefix("torch.")
    return OperatorWork("matmul", dtype, "matrix", 2 * rows * columns * depth, size, (1, rows, columns, depth))


def _linear(call: _Call) -> OperatorWork:
    """Returns the work of a linear layer as one operator. Its weight is (columns, depth)."""
    source, weight = call.args[0], call.args[1]
    columns, depth = weight.shape
    rows = source.numel() // max(1, depth)
    size = sum(map(distinct_bytes, call.operands)) + sum(map(distinct_bytes, call.results))
    return OperatorWork(
        "matmul", _dtype([source]), "matrix", 2 * rows * columns * depth, size, (1, rows, columns, depth)
    )


def _linear_backward(call: _Call) -> OperatorWork:
    """Returns the work of the requested gradients, of input, weight and bias."""
    source, gradient, weight, output_mask = call.args
    columns, depth = weight.shape
    rows = source.numel() // max(1, depth)
    products = int(output_mask[0]) + int(output_mask[1])
    size = (
        products * distinct_bytes(gradient)
        + distinct_bytes(source)
        + distinct_bytes(weight)
        + sum(map(distinct_bytes, call.results))
    )
    flops = 2 * products * rows * columns * depth
    return OperatorWork(
        "matmul", _dtype([source]), "matrix", flops, size, (max(1, products), rows, depth, columns), sum(output_mask)
    )


def _recurrent(call: _Call) -> OperatorWork:
    """Returns the work of a recurrent layer: in each step a product with the input weights and one with the state's."""
    source, of_input, of_state = call.args[:3]
    length, batch, inputs = source.shape
    columns, width = of_state.shape
    passes = 2 if "backward" in call.name else 1
    size = sum(map(distinct_bytes, call.operands)) + sum(map(distinct_bytes, call.results))
    flops = 2 * passes * length * batch * columns * (inputs + width)
    product = (1, batch, columns, inputs + width)
    return OperatorWork("matmul", _dtype([of_input]), "matrix", flops, size, product, kernels=passes * length)


def _vector_product(call: _Call) -> OperatorWork:
    """Returns the work of products with vectors, such as mv and dot, which memory bounds."""
    inputs = call.operands
    elements = max(tensor.numel() for tensor in inputs)
    size = sum(map(distinct_bytes, inputs)) + sum(map(distinct_bytes, call.results))
    return OperatorWork("reduction", _dtype(inputs), "vector", 2 * elements, size)


def _convolution(call: _Call) -> OperatorWork:
    """Returns the work of a convolution as a matrix product: (positions, channels), of depth inputs times window."""
    source, weight = call.args[0], call.args[1]
    size = sum(map(distinct_bytes, call.operands)) + sum(map(distinct_bytes, call.results))
    flops = _counted_flops(call)
    groups = int(call.args[8])
    channels = weight.shape[0] // groups
    depth = math.prod(weight.shape[1:])
    rows = max(1, flops // max(1, 2 * groups * channels * depth))
    return OperatorWork("convolution", _dtype([source]), "matrix", flops, size, (groups, rows, channels, depth))


def _convolution_backward(call: _Call) -> OperatorWork:
    """Returns the work of the requested gradients, of input, weight and bias."""
    gradient, source, weight = call.args[0], call.args[1], call.args[2]
    output_mask = list(call.args[10])
    flops = _counted_flops(call)
    size = (
        distinct_bytes(gradient) * sum(output_mask)
        + distinct_bytes(source)
        + distinct_bytes(weight)
        + sum(map(distinct_bytes, call.results))
    )
    groups = int(call.args[9])
    channels, depth = weight.shape[0] // groups, math.prod(weight.shape[1:])
    rows = max(1, flops // max(1, 2 * groups * channels * depth))
    return OperatorWork(
        "convolution",
        _dtype([source]),
        "matrix",
        flops,
        size,
        (groups, rows, channels, depth),
        kernels=sum(output_mask),
    )


def _attention(call: _Call) -> OperatorWork:
    """Returns the work of fused attention. Scores stay in caches, so memory moves operands and results alone."""
    inputs = call.operands
    size = sum(map(distinct_bytes, inputs)) + sum(map(distinct_bytes, call.results))
    is_backward = "backward" in call.name
    if call.function.overloadpacket in flop_registry:
        flops = _counted_flops(call)
    else:  # two products forward, five backward; PyTorch's counter lacks the operators of the CPU
        query, key, value = [tensor for tensor in inputs if tensor.dim() == 4][is_backward : 3 + is_backward]
        batch, heads, rows, width = query.shape
        product = 2 * batch * heads * rows * key.shape[-2]
        flops = product * (3 * width + 2 * value.shape[-1] if is_backward else width + value.shape[-1])
    return OperatorWork("attention", _dtype(inputs), "matrix", flops, size, kernels=2 if is_backward else 1)


def _embedding(call: _Call) -> OperatorWork:
    """Returns the work of a lookup, which reads the rows of the indices and not the whole table."""
    written = call.results
    indices = [tensor for tensor in call.operands if not tensor.is_floating_point()]
    size = 2 * sum(map(distinct_bytes, written)) + sum(map(distinct_bytes, indices))
    return OperatorWork("embedding", _dtype(written), flops=0, size=size)


def _embedding_backward(call: _Call) -> OperatorWork:
    """Returns the work of clearing the table's gradient, sorting the indices and adding a row per index."""
    gradient, indices = call.args[0], call.args[1]
    size = sum(map(distinct_bytes, call.results)) + 3 * distinct_bytes(gradient) + 8 * distinct_bytes(indices)
    return OperatorWork("embedding", _dtype([gradient]), flops=gradient.numel(), size=size, kernels=8)


def _norm_backward(call: _Call) -> OperatorWork:
    """Returns the work of one pass for the input's gradient, and a second for the gradients of weight and bias."""
    inputs, outputs = call.operands, call.results
    passes = 2 if len(outputs) > 1 else 1
    size = passes * sum(map(distinct_bytes, inputs)) + sum(map(distinct_bytes, outputs))
    return OperatorWork("normalization", _dtype(inputs), flops=8 * inputs[0].numel(), size=size, kernels=passes)


def _copy(call: _Call) -> OperatorWork:
    """Returns the work of a copy, over the link to the host if one side is there."""
    if call.name == "aten::copy_":
        target, source = call.args[:2]
        crosses = (target.device.type == "cpu") != (source.device.type == "cpu")
    else:
        source = call.args[0]
        # simulate.py computes the work also before the call, without a result. Then it is that of a copy to the host.
        target = call.results[0] if call.results else source
        crosses = not call.results or (target.device.type == "cpu") != (source.device.type == "cpu")
    size = distinct_bytes(target) if crosses else distinct_bytes(source) + distinct_bytes(target)
    return OperatorWork("copy", _dtype([target]), size=size, link="host" if crosses else "")


def _scalar_to_host(call: _Call) -> OperatorWork:
    """Returns the work of copying one element to the host."""
    return OperatorWork("copy", _dtype(call.operands), size=call.operands[0].element_size(), link="host")


def _collective(rounds: int) -> Callable[..., OperatorWork]:
    """Returns the rule of a ring collective with ``rounds`` rounds.

    The data has one part per rank. In each round every rank sends all parts but one, with one message per part. With 0
    rounds a rank sends one message with all of the data.
    """

    def rule(call: _Call) -> OperatorWork:
        ranks = _group_size(call)
        # The data of all ranks is the largest of the arguments and the result.
        size = max(sum(map(distinct_bytes, tensors(part))) for part in (*call.args, call.result))
        messages = rounds * (ranks - 1)
        own = size * messages // ranks if rounds else size
        return OperatorWork("copy", _dtype(call.operands + call.results), size=own, link="peer", messages=messages or 1)

    return rule


def _group_size(call: _Call) -> int:
    """Returns the number of ranks. The group is an object (c10d) or a name (functional collectives)."""
    for index, argument in enumerate(call.function._schema.arguments):
        value = call.args[index] if index < len(call.args) else call.kwargs.get(argument.name)
        if argument.name == "process_group":
            return int(torch.distributed.ProcessGroup.unbox(value).size())  # type: ignore[arg-type]
        if argument.name == "group_name":
            return int(_resolve_process_group(str(value)).size())
    raise NotImplementedError(
        f"{call.name} has no argument process_group or group_name, from which the number of ranks follows"
    )


def _resolve_process_group(name: str) -> Any:
    from torch._C._distributed_c10d import _resolve_process_group as resolve

    return resolve(name)  # type: ignore[arg-type]


# The names of attention operators, and the rules of other operators whose work does not follow from their bytes alone.
_ATTENTION = re.compile(r"aten::_?(scaled_dot_product|(flash|efficient)_attention)")
_RULES: dict[str, Callable[..., OperatorWork]] = {
    **dict.fromkeys(("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation"), _product),
    **dict.fromkeys(("aten::_scaled_mm", "aten::_int_mm"), _narrow_product),
    **dict.fromkeys(("aten::mv", "aten::addmv", "aten::dot", "aten::vdot"), _vector_product),
    **dict.fromkeys(("aten::convolution", "aten::_convolution"), _convolution),
    "aten::mkldnn_rnn_layer": _recurrent,
    "aten::mkldnn_rnn_layer_backward": _recurrent,
    # fused.py registers the operators openreg_predict::*, which stand on meta for operators that only the device has.
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
    "aten::_local_scalar_dense": _scalar_to_host,
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
