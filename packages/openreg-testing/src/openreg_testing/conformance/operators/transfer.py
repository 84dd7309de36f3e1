# SPDX-License-Identifier: BSD-3-Clause
"""Copies the arguments of a sample (SampleInput) to a device.

Copies of dense tensors have the bytes and the strides of the originals, and share storages where those do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

Inputs = tuple[tuple[Any, ...], dict[str, Any]]  # positional and named arguments

# Positions in (input, *args) of operands that stay on the CPU, as in the table's samples for a GPU.
CPU_OPERANDS = {"tensor_split": (1,)}

WITHOUT_TENSORS = {"broadcast_shapes"}  # operators without a tensor among their arguments and results


def inputs_of(sample: Any) -> Inputs:
    """Returns the positional and named arguments of an operator for a sample."""
    return (sample.input, *sample.args), dict(sample.kwargs)


def whole_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the whole storage of a tensor as a flat tensor."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())


def copy_inputs(op: Any, inputs: Inputs, device: str, adds_device: bool = True) -> Any:
    """Returns copies of the arguments for a call on `device`.

    Replaces the CPU as an argument by `device`, and generators by those of `device` with the same seed.
    With `adds_device`, adds the argument `device` if no argument is a tensor, because the operator then creates one.
    """
    args, kwargs = inputs
    storages: dict[Any, Any] = {}
    on_cpu = CPU_OPERANDS.get(op.name, ())
    args = tuple(
        copy_value(value, "cpu" if position in on_cpu and isinstance(value, torch.Tensor) else device, storages)
        for position, value in enumerate(args)
    )
    kwargs = {name: copy_value(value, device, storages) for name, value in kwargs.items()}
    if (
        adds_device
        and device != "cpu"
        and "out" not in kwargs
        and op.name not in WITHOUT_TENSORS
        and not tensors_in((args, kwargs))
    ):
        kwargs["device"] = torch.device(device)  # for a factory whose sample names no device
    return args, kwargs


def names_cpu(value: Any) -> bool:
    """Returns True for the CPU as an argument: its name, or a device."""
    return value == "cpu" if isinstance(value, str) else isinstance(value, torch.device) and value.type == "cpu"


def copy_value(value: Any, device: str, storages: dict[Any, Any]) -> Any:
    """Returns a copy of a nested value for a device. `storages` has the copies of storages that were made before."""

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return copy_tensor(leaf, device, storages)
        if names_cpu(leaf):
            return torch.device(device)
        if isinstance(leaf, torch.Generator):
            return torch.Generator(device).manual_seed(leaf.initial_seed())
        return leaf

    return pytree.tree_map(convert, value)


def copy_tensor(tensor: torch.Tensor, device: str, storages: dict[Any, Any]) -> torch.Tensor:
    """Returns a copy of a CPU tensor on a device, and any other tensor unchanged.

    Copies of tensors that share a storage share one, too, except those of sparse tensors and of tensor subclasses.
    """
    if tensor.device.type != "cpu":
        return tensor
    if tensor.layout != torch.strided or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return tensor.detach().to(device, copy=True).requires_grad_(tensor.requires_grad)
    storage = tensor.untyped_storage()
    if (storage._cdata, device) not in storages:
        content = torch.empty(0, dtype=torch.uint8).set_(storage)
        storages[storage._cdata, device] = content.to(device, copy=True).untyped_storage()
    copy = torch.empty(0, dtype=tensor.dtype, device=device).set_(
        storages[storage._cdata, device], tensor.storage_offset(), tensor.size(), tensor.stride()
    )
    if tensor.is_conj():
        copy = copy.conj()
    if tensor.is_neg():
        copy = torch._neg_view(copy)
    return copy.requires_grad_() if tensor.requires_grad else copy


def with_moved(inputs: Inputs, position: int, device: torch.device) -> Inputs:
    """Returns the arguments with the leaf at a position in the flattened arguments moved to another device."""
    leaves, structure = pytree.tree_flatten(inputs)
    leaves[position] = leaves[position].detach().to(device)
    moved: Inputs = pytree.tree_unflatten(leaves, structure)
    return moved


def tensors_in(values: Any) -> list[torch.Tensor]:
    """Returns all tensors in nested tuples, lists and dictionaries."""
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def densified(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a sparse tensor as a dense one, and any other tensor unchanged.

    The checks compare dense tensors and pass dense gradients, because operators such as isclose reject sparse tensors.
    """
    return tensor if tensor.layout in (torch.strided, torch.jagged) else tensor.to_dense()


def change_dtype(values: Any, narrow: torch.dtype, wide: torch.dtype) -> Any:
    """Returns the values, in which tensors of dtype `narrow` are converted to `wide` and dtype arguments replaced.

    The complex dtype of `narrow` becomes that of `wide`.
    """
    instead = {narrow: wide}
    if narrow.is_floating_point:
        instead[narrow.to_complex()] = wide.to_complex()

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype in instead:
            return leaf.detach().to(instead[leaf.dtype]).requires_grad_(leaf.requires_grad)
        return instead.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf

    return pytree.tree_map(convert, values)
