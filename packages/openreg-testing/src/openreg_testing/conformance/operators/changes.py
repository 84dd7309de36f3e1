# SPDX-License-Identifier: BSD-3-Clause
"""A sample with one of its arguments changed: wrong sizes, dtypes, devices, layouts and numbers, one at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .entries import name_of
from .transfer import Inputs, tensors_in

# Each of them is tried in the place of a tensor's own dtype, and so is a Python number of each kind.
OTHER_DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.complex64)
NUMBERS = (-1000, 1000)  # beyond the dimensions, indices and counts of the table's samples
CPU, SECOND = "cpu", "second"  # where a tensor is that is not beside the others
FEW = 16  # elements of a tensor that is written in full into the line that repeats a call


@dataclasses.dataclass(frozen=True)
class Change:
    """What was changed, in words, and the arguments after it.

    `moved` is the position, among the leaves of the arguments, of a tensor that is on another device than the others:
    `to` the CPU, or the second device of the kind.
    """

    what: str
    inputs: Inputs
    moved: int | None = None
    to: str = ""


def changes(inputs: Inputs) -> Iterator[Change]:
    """All changes of one argument, in an order that depends on the arguments alone.

    The tensors of the result are new ones, or those of the sample, which nobody may write to.
    """
    leaves, structure = pytree.tree_flatten(inputs)

    def instead(position: int, value: Any) -> Inputs:
        changed: Inputs = pytree.tree_unflatten([*leaves[:position], value, *leaves[position + 1 :]], structure)
        return changed

    names = _names(inputs)
    is_beside_others = len(tensors_in(inputs)) > 1
    for position, leaf in enumerate(leaves):
        for what, value in _values_instead_of(leaf):
            yield Change(f"{names[position]}: {what}", instead(position, value))
        # A GPU takes a tensor of no dimensions as a number, wherever it is.
        if is_beside_others and isinstance(leaf, torch.Tensor) and leaf.dim() > 0:
            yield Change(f"{names[position]}: on the CPU", inputs, position, CPU)
            yield Change(f"{names[position]}: on a second device", inputs, position, SECOND)
    yield from _lengths(inputs)


def _names(inputs: Inputs) -> list[str]:
    """Of each leaf the place that a reader finds it at: `args[1]`, `kwargs['weight']`."""
    paths = [path for path, _ in pytree.tree_flatten_with_path(inputs)[0]]
    return [("args", "kwargs")[path[0] != pytree.SequenceKey(0)] + pytree.keystr(path[1:]) for path in paths]


def _values_instead_of(leaf: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(leaf, torch.Tensor):
        if leaf.layout == torch.strided and not leaf.is_nested and not leaf.is_quantized:
            yield from _tensors_instead_of(leaf.detach())
        yield "None", None
    elif isinstance(leaf, bool):
        yield f"{not leaf}", not leaf
    elif isinstance(leaf, (int, float)):
        for number in (leaf + 1, -leaf - 1, *NUMBERS, float("nan"), None):
            yield f"{number}", number
    elif isinstance(leaf, torch.dtype):
        yield from ((name_of(dtype), dtype) for dtype in OTHER_DTYPES if dtype != leaf)
    elif isinstance(leaf, str) and leaf != "cpu":  # which is the device, and not an argument to be changed
        yield "a word that means nothing", "nothing"


def _tensors_instead_of(tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    for dimension, size in enumerate(tensor.shape):
        for other in {size + 1, max(size - 1, 0), 0} - {size}:
            yield f"{other} for {size} elements in dimension {dimension}", _resized(tensor, dimension, other)
    yield "one dimension more", tensor.unsqueeze(0)
    if tensor.dim() > 0:
        yield "one dimension fewer", tensor[0] if tensor.shape[0] else tensor.new_zeros(tensor.shape[1:])
    for dtype in OTHER_DTYPES:
        if dtype != tensor.dtype:
            yield name_of(dtype), (tensor.real if tensor.is_complex() and not dtype.is_complex else tensor).to(dtype)
    if tensor.dim() > 0:
        yield "sparse", tensor.to_sparse()


def _resized(tensor: torch.Tensor, dimension: int, size: int) -> torch.Tensor:
    """The elements of a tensor as far as there are some, and further ones like its last."""
    have = tensor.shape[dimension]
    if size and not have:
        return tensor.new_zeros([*tensor.shape[:dimension], size, *tensor.shape[dimension + 1 :]])
    return tensor.index_select(dimension, torch.arange(size).clamp(max=max(have - 1, 0)))


def _lengths(inputs: Inputs) -> Iterator[Change]:
    """Lists of numbers among the arguments, such as sizes and strides, with one number fewer and one more."""
    args, kwargs = inputs
    places: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    for place, value in places:
        if isinstance(value, (list, tuple)) and value and all(type(item) is int for item in value):
            for what, numbers in (("fewer", value[:-1]), ("more", [*value, value[-1]])):
                where = f"args[{place}]" if isinstance(place, int) else f"kwargs[{place!r}]"
                yield Change(f"{where}: one number {what}", _with(inputs, place, type(value)(numbers)))


def _with(inputs: Inputs, place: int | str, value: Any) -> Inputs:
    """The arguments with another value of one, which is named by its position or its name."""
    args, kwargs = inputs
    if isinstance(place, int):
        return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, {**kwargs, place: value}


def written(value: Any) -> str:
    """The Python that makes an argument again: its numbers where they are few, else its shape and dtype."""
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
    """The call, in one line."""
    args, kwargs = inputs
    return f"{name}({', '.join([*map(written, args), *(f'{key}={written(value)}' for key, value in kwargs.items())])})"
