# SPDX-License-Identifier: BSD-3-Clause
"""Changes one argument of a sample (SampleInput) at a time: to other sizes, dtypes, devices, layouts and numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .entries import name_of
from .transfer import Inputs, tensors_in

# Each of these replaces the dtype of a tensor.
OTHER_DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.complex64)
NUMBERS = (-1000, 1000)  # beyond the dimensions, indices and counts of the table's samples
CPU, SECOND = "cpu", "second"  # the device of a tensor that is moved away from the others
FEW = 16  # a report contains the values of tensors of at most this many elements


@dataclasses.dataclass(frozen=True)
class ArgumentChange:
    """A call with one changed argument: the description of the change, and all arguments.

    If `moved` is not None, it is the position of a tensor among the leaves of the arguments. The caller has to move
    this tensor to `to`: CPU, or SECOND, the second device of the backend.
    """

    what: str  # such as "args[0]: one dimension more"
    inputs: Inputs
    moved: int | None = None
    to: str = ""


def changes(inputs: Inputs) -> Iterator[ArgumentChange]:
    """Yields all changes of one argument, in an order that depends only on the arguments.

    The yielded tensors are new ones or those of the sample, so callers must not write to them.
    """
    leaves, structure = pytree.tree_flatten(inputs)

    def with_leaf(position: int, value: Any) -> Inputs:
        changed: Inputs = pytree.tree_unflatten([*leaves[:position], value, *leaves[position + 1 :]], structure)
        return changed

    names = _names(inputs)
    has_several_tensors = len(tensors_in(inputs)) > 1
    for position, leaf in enumerate(leaves):
        for what, value in _replacements(leaf):
            yield ArgumentChange(f"{names[position]}: {what}", with_leaf(position, value))
        # A tensor without dimensions on the CPU counts as a number, which PyTorch accepts.
        if has_several_tensors and isinstance(leaf, torch.Tensor) and leaf.dim() > 0:
            yield ArgumentChange(f"{names[position]}: on the CPU", inputs, position, CPU)
            yield ArgumentChange(f"{names[position]}: on a second device", inputs, position, SECOND)
    yield from _lengths(inputs)


def _names(inputs: Inputs) -> list[str]:
    """Returns an expression for each leaf, such as `args[1]` or `kwargs['weight']`."""
    paths = [path for path, _ in pytree.tree_flatten_with_path(inputs)[0]]
    return [("args", "kwargs")[path[0] != pytree.SequenceKey(0)] + pytree.keystr(path[1:]) for path in paths]


def _replacements(leaf: Any) -> Iterator[tuple[str, Any]]:
    """Yields descriptions and values that replace one leaf of the arguments."""
    if isinstance(leaf, torch.Tensor):
        if leaf.layout == torch.strided and not leaf.is_nested and not leaf.is_quantized:
            yield from _tensor_replacements(leaf.detach())
        yield "None", None
    elif isinstance(leaf, bool):
        yield f"{not leaf}", not leaf
    elif isinstance(leaf, (int, float)):
        for number in (leaf + 1, -leaf - 1, *NUMBERS, float("nan"), None):
            yield f"{number}", number
    elif isinstance(leaf, torch.dtype):
        yield from ((name_of(dtype), dtype) for dtype in OTHER_DTYPES if dtype != leaf)
    elif isinstance(leaf, str) and leaf != "cpu":  # "cpu" is the device of the sample
        yield "an unknown string", "nothing"


def _tensor_replacements(tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields descriptions and tensors of another size, number of dimensions, dtype or layout."""
    for dimension, size in enumerate(tensor.shape):
        for other in {size + 1, max(size - 1, 0), 0} - {size}:
            yield f"{other} instead of {size} elements in dimension {dimension}", _resized(tensor, dimension, other)
    yield "one dimension more", tensor.unsqueeze(0)
    if tensor.dim() > 0:
        yield "one dimension fewer", tensor[0] if tensor.shape[0] else tensor.new_zeros(tensor.shape[1:])
    for dtype in OTHER_DTYPES:
        if dtype != tensor.dtype:
            yield name_of(dtype), (tensor.real if tensor.is_complex() and not dtype.is_complex else tensor).to(dtype)
    if tensor.dim() > 0:
        yield "sparse", tensor.to_sparse()


def _resized(tensor: torch.Tensor, dimension: int, size: int) -> torch.Tensor:
    """Returns the tensor with another size of one dimension: cut, or filled up with copies of its last part.

    An empty dimension is filled with zeros.
    """
    old_size = tensor.shape[dimension]
    if size and not old_size:
        return tensor.new_zeros([*tensor.shape[:dimension], size, *tensor.shape[dimension + 1 :]])
    return tensor.index_select(dimension, torch.arange(size).clamp(max=max(old_size - 1, 0)))


def _lengths(inputs: Inputs) -> Iterator[ArgumentChange]:
    """Yields calls in which a list of numbers, such as sizes or strides, is one number shorter or longer."""
    args, kwargs = inputs
    places: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    for place, value in places:
        if isinstance(value, (list, tuple)) and value and all(type(item) is int for item in value):
            for what, numbers in (("fewer", value[:-1]), ("more", [*value, value[-1]])):
                where = f"args[{place}]" if isinstance(place, int) else f"kwargs[{place!r}]"
                yield ArgumentChange(f"{where}: one number {what}", _with(inputs, place, type(value)(numbers)))


def _with(inputs: Inputs, place: int | str, value: Any) -> Inputs:
    """Returns the arguments with another value at one place: a position or a name."""
    args, kwargs = inputs
    if isinstance(place, int):
        return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, {**kwargs, place: value}


def written(value: Any) -> str:
    """Returns Python code for an argument.

    The code contains the values of a small tensor. For a large or sparse one it is torch.ones() of its shape and dtype.
    """
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.numel() > FEW:
            dense = f"torch.ones({tuple(value.shape)}, dtype={value.dtype})"
            return dense if value.layout == torch.strided else f"{dense}.to_sparse()"
        return f"torch.tensor({value.tolist()}, dtype={value.dtype})" + (
            f".reshape({tuple(value.shape)})" if 0 in value.shape else ""
        )
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(written, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    return repr(value)


def call_of(name: str, inputs: Inputs) -> str:
    """Returns Python code for a call, in one line."""
    args, kwargs = inputs
    return f"{name}({', '.join([*map(written, args), *(f'{key}={written(value)}' for key, value in kwargs.items())])})"
