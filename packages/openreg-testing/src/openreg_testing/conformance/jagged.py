# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own table of operators on nested tensors of layout torch.jagged, run on the CPU and moved to the device."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.definitions.nested import njt_op_db
from torch.utils import _pytree as pytree

RTOL, ATOL = 1e-3, 1e-4
DTYPES = (torch.float32, torch.int64, torch.bool)

# What ends a process of PyTorch 2.13, whatever the device.
CRASHES_BACKWARD = ("split_with_sizes",)


def entries() -> list[Any]:
    """Those of the table that take such tensors, in a dtype that they have."""
    return [op for op in njt_op_db if op.supports_njt and dtype_of(op) is not None]


def dtype_of(op: Any) -> torch.dtype | None:
    """The first of DTYPES that an entry has."""
    return next((dtype for dtype in DTYPES if dtype in op.dtypes), None)


@functools.cache
def _nested_tensor() -> Any:
    from torch.nested._internal.nested_tensor import NestedTensor

    return NestedTensor


def is_jagged(value: Any) -> bool:
    """Whether it is such a tensor."""
    return isinstance(value, _nested_tensor())


class Mover:
    """Copies values to a device. What tensors share of offsets and lengths stays shared: PyTorch compares objects."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._shared: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, values: Any) -> Any:
        """The same values there, each tensor a leaf that wants the gradient that it wanted."""
        return pytree.tree_map_only(torch.Tensor, self._move, values)

    def _move(self, tensor: Any) -> torch.Tensor:
        if not is_jagged(tensor):
            return self._dense(tensor).requires_grad_(tensor.requires_grad)
        from torch.nested._internal.nested_tensor import nested_view_from_values_offsets_lengths

        moved: torch.Tensor = nested_view_from_values_offsets_lengths(  # type: ignore[no-untyped-call]
            self._dense(tensor._values),
            self._same(tensor._offsets),
            self._same(tensor._lengths),
            ragged_idx=tensor._ragged_idx,
            min_seqlen=tensor._maybe_min_seqlen,
            max_seqlen=tensor._maybe_max_seqlen,
        )
        return moved.detach().requires_grad_(tensor.requires_grad)

    def _same(self, tensor: torch.Tensor | None) -> torch.Tensor | None:
        if tensor is None:
            return None
        if id(tensor) not in self._shared:
            self._shared[id(tensor)] = tensor, self._dense(tensor)
        return self._shared[id(tensor)][1]

    def _dense(self, tensor: torch.Tensor) -> torch.Tensor:
        """With the same sizes, strides and place in its memory."""
        base = tensor.detach()
        count = base.untyped_storage().nbytes() // base.element_size()
        flat = base.as_strided((count,), (1,), 0).to(self._device, copy=True)
        return flat.as_strided(base.size(), base.stride(), base.storage_offset())


def samples_of(op: Any) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Names, positional and named arguments on the CPU, the same ones each time."""
    dtype = dtype_of(op)
    assert dtype is not None
    torch.manual_seed(2026)
    wants_grad = op.supports_autograd and dtype.is_floating_point
    for sample in op.sample_inputs("cpu", dtype, requires_grad=wants_grad):
        yield sample.name, (sample.input, *sample.args), sample.kwargs


def run(op: Any, args: Any, kwargs: Any) -> tuple[Any, list[torch.Tensor | None] | str]:
    """The result, and the gradients of all inputs, or the kind of error where PyTorch has no derivative."""
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


def tensors_in(values: Any) -> list[torch.Tensor]:
    """All tensors in nested tuples, lists and dictionaries."""
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def attempt(op: Any, args: Any, kwargs: Any) -> Any:
    """What run() gives, or the exception that it raises."""
    torch.manual_seed(7)
    try:
        return run(op, args, kwargs)
    except Exception as error:
        return error


def compare(device: torch.device, op: Any) -> None:
    """Runs all samples of an entry on the CPU and on the device: results, gradients and kinds of errors are the same.

    Skips an entry of which PyTorch cannot make samples. Raises AssertionError with the sample's name.
    """
    try:
        samples = list(samples_of(op))
    except NotImplementedError as error:
        pytest.skip(f"PyTorch makes no samples of it in {dtype_of(op)}: {error}")
    for name, args, kwargs in samples:
        expected = attempt(op, *Mover(torch.device("cpu"))((args, kwargs)))
        found = attempt(op, *Mover(device)((args, kwargs)))
        if isinstance(expected, Exception) or isinstance(found, Exception):
            assert type(found) is type(expected), f"{name}: {found!r}; the CPU: {expected!r}"
            continue
        try:
            assert_same(device, found[0], expected[0])
            if isinstance(expected[1], str) or isinstance(found[1], str):
                assert found[1] == expected[1], f"the gradient: {found[1]}; the CPU: {expected[1]}"
            else:
                assert_same(device, found[1], expected[1])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def assert_same(device: torch.device, found: Any, expected: Any) -> None:
    """Numbers, dtypes, strides, offsets and lengths; tensors are on the device."""
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
    """The dense tensors that a value is made of."""
    if is_jagged(value):
        return [part for part in (value._values, value._offsets, value._lengths) if part is not None]
    return [value] if isinstance(value, torch.Tensor) else []
