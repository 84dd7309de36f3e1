# SPDX-License-Identifier: BSD-3-Clause
"""Compares the device with the CPU for PyTorch's own table of operators on nested tensors of layout torch.jagged."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.definitions.nested import njt_op_db
from torch.utils import _pytree as pytree

from .operators.transfer import tensors_in

RTOL, ATOL = 1e-3, 1e-4
DTYPES = (torch.float32, torch.int64, torch.bool)

# The backward pass of these entries crashes PyTorch 2.13 on every device.
CRASHES_BACKWARD = ("split_with_sizes",)


def entries() -> list[Any]:
    """Returns the entries of the table (OpInfo) that accept jagged tensors in one of DTYPES."""
    return [op for op in njt_op_db if op.supports_njt and dtype_of(op) is not None]


def dtype_of(op: Any) -> torch.dtype | None:
    """Returns the first of DTYPES that an entry lists, or None."""
    return next((dtype for dtype in DTYPES if dtype in op.dtypes), None)


@functools.cache
def _nested_tensor() -> Any:
    from torch.nested._internal.nested_tensor import NestedTensor

    return NestedTensor


def is_jagged(value: Any) -> bool:
    """Returns True if a value is a nested tensor of layout torch.jagged."""
    return isinstance(value, _nested_tensor())


class DeviceCopier:
    """A copier of values to a device.

    Copies of tensors that share offsets or lengths share theirs, too, because PyTorch compares them by identity.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._shared: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, values: Any) -> Any:
        """Returns the values with a copy of each tensor: a leaf on the device with an unchanged requires_grad."""
        return pytree.tree_map_only(torch.Tensor, self._copy, values)

    def _copy(self, tensor: Any) -> torch.Tensor:
        if not is_jagged(tensor):
            return self._copy_dense(tensor).requires_grad_(tensor.requires_grad)
        from torch.nested._internal.nested_tensor import nested_view_from_values_offsets_lengths

        moved: torch.Tensor = nested_view_from_values_offsets_lengths(  # type: ignore[no-untyped-call]
            self._copy_dense(tensor._values),
            self._copy_shared(tensor._offsets),
            self._copy_shared(tensor._lengths),
            ragged_idx=tensor._ragged_idx,
            min_seqlen=tensor._maybe_min_seqlen,
            max_seqlen=tensor._maybe_max_seqlen,
        )
        return moved.detach().requires_grad_(tensor.requires_grad)

    def _copy_shared(self, tensor: torch.Tensor | None) -> torch.Tensor | None:
        if tensor is None:
            return None
        if id(tensor) not in self._shared:
            self._shared[id(tensor)] = tensor, self._copy_dense(tensor)
        return self._shared[id(tensor)][1]

    def _copy_dense(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy with unchanged sizes, strides and storage offset."""
        base = tensor.detach()
        count = base.untyped_storage().nbytes() // base.element_size()
        flat = base.as_strided((count,), (1,), 0).to(self._device, copy=True)
        return flat.as_strided(base.size(), base.stride(), base.storage_offset())


def samples_of(op: Any) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yields names, positional and named arguments of the samples on the CPU; every call yields equal ones."""
    dtype = dtype_of(op)
    assert dtype is not None
    torch.manual_seed(2026)
    requires_grad = op.supports_autograd and dtype.is_floating_point
    for sample in op.sample_inputs("cpu", dtype, requires_grad=requires_grad):
        yield sample.name, (sample.input, *sample.args), sample.kwargs


def run(op: Any, args: Any, kwargs: Any) -> tuple[Any, list[torch.Tensor | None] | str]:
    """Returns the result and the gradients of all inputs.

    If computing the gradients raises, the name of the exception takes their place. They are an empty list if there is
    nothing to differentiate or the entry is in CRASHES_BACKWARD.
    """
    result = op.op(*args, **kwargs)
    outputs = [leaf for leaf in tensors_in(result) if leaf.requires_grad]
    inputs = [leaf for leaf in tensors_in((args, kwargs)) if leaf.requires_grad]
    if not outputs or not inputs or op.full_name in CRASHES_BACKWARD:
        return result, []
    try:
        weights = [torch.ones_like(output) / 4 for output in outputs]
        return result, list(torch.autograd.grad(outputs, inputs, weights, allow_unused=True))
    except (RuntimeError, ValueError, TypeError) as error:
        return result, type(error).__name__


def attempt(op: Any, args: Any, kwargs: Any) -> Any:
    """Returns the result of run(), or the exception that it raises."""
    torch.manual_seed(7)
    try:
        return run(op, args, kwargs)
    except Exception as error:
        return error


def compare(device: torch.device, op: Any) -> None:
    """Runs all samples of an entry on the CPU and on the device, and compares results, gradients and exception types.

    Skips an entry for which PyTorch makes no samples. Raises AssertionError with the name of the sample if they differ.
    """
    try:
        samples = list(samples_of(op))
    except NotImplementedError as error:
        pytest.skip(f"PyTorch makes no samples of {op.full_name} in {dtype_of(op)}: {error}")
    for name, args, kwargs in samples:
        expected = attempt(op, *DeviceCopier(torch.device("cpu"))((args, kwargs)))
        found = attempt(op, *DeviceCopier(device)((args, kwargs)))
        if isinstance(expected, Exception) or isinstance(found, Exception):
            assert type(found) is type(expected), f"{name}: {found!r}; the CPU: {expected!r}"
            continue
        try:
            assert_same(device, found[0], expected[0])
            if isinstance(expected[1], str) or isinstance(found[1], str):
                assert found[1] == expected[1], f"gradients: {found[1]}; the CPU: {expected[1]}"
            else:
                assert_same(device, found[1], expected[1])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def assert_same(device: torch.device, found: Any, expected: Any) -> None:
    """Raises AssertionError unless all tensors found are on the device and match the expected ones.

    Compares values, dtypes, strides, offsets and lengths.
    """
    for one, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        assert type(one) is type(other), f"{type(one).__name__}, not {type(other).__name__}"
        for part, other_part in zip(_parts(one), _parts(other), strict=True):
            assert part.device == device, f"a result is on {part.device}"
            assert part.stride() == other_part.stride() or part.numel() < 2, (
                f"strides {part.stride()}, not {other_part.stride()}"
            )
            here, there = part.detach().cpu(), other_part.detach()
            torch.testing.assert_close(here, there, rtol=RTOL, atol=ATOL, equal_nan=True)


def _parts(value: Any) -> list[torch.Tensor]:
    """Returns the dense tensors of a value: the members of a jagged tensor, or a tensor itself."""
    if is_jagged(value):
        return [part for part in (value._values, value._offsets, value._lengths) if part is not None]
    return [value] if isinstance(value, torch.Tensor) else []
