# SPDX-License-Identifier: BSD-3-Clause
"""Checks results and gradients against the CPU, for inputs in several memory layouts.

Compares errors, warnings, strides, storage offsets, conjugate and negative bits, and values. Only strides of dimensions
with more than one element are compared, in tensors that are not empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import device_under_test
from .check_random import has_determined_values
from .check_results import Computation
from .comparison import difference
from .entries import differentiable, samples_of
from .outcome import attempt, warning_difference
from .reference import on_cpu
from .report import EntryReport
from .transfer import Inputs, copy_inputs, inputs_of, tensors_in

SAMPLES = 8
Form = Callable[[torch.Tensor], torch.Tensor]  # returns a tensor of equal shape in another memory layout
OTHER_DTYPES = (torch.bfloat16, torch.complex64)  # run besides an entry's first dtype: other kernels, conjugate bits


def is_compared_dtype(op: Any, dtype: torch.dtype, report: EntryReport) -> bool:
    """Returns True for the dtypes in which this check runs, because strides depend little on the dtype.

    They are OTHER_DTYPES and the first dtype of the entry (the OpInfo of an operator), if the CPU supports them.
    """
    return dtype in op.dtypes and (report.is_first_dtype or dtype in OTHER_DTYPES)


def with_memory_order(tensor: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """Returns a copy whose dimensions lie in memory in this order; the last one has stride 1."""
    back = sorted(range(tensor.dim()), key=order.__getitem__)
    return tensor.permute(order).clone(memory_format=torch.contiguous_format).permute(back)


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy whose dimensions lie in memory in reverse order."""
    return with_memory_order(tensor, tuple(reversed(range(tensor.dim())))) if tensor.dim() > 1 else tensor


def permuted(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy whose first dimension has stride 1: channels-last of an image without a batch."""
    return with_memory_order(tensor, (*range(1, tensor.dim()), 0)) if tensor.dim() > 2 else tensor


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy whose second dimension has stride 1."""
    return with_memory_order(tensor, (0, *range(2, tensor.dim()), 1)) if tensor.dim() > 2 else tensor


def sliced(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a view of every second element in the last dimension of a larger tensor."""
    return tensor.repeat_interleave(2, -1)[..., ::2] if tensor.dim() else tensor


def sliced_rows(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a view that is dense except for gaps between the parts of the first dimension."""
    return tensor.repeat_interleave(2, 0)[::2] if tensor.dim() > 1 else tensor


def expanded(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the first part of the first dimension, expanded to the shape of the tensor."""
    return tensor[:1].expand_as(tensor) if tensor.dim() > 1 and tensor.numel() else tensor


FORMS = (transposed, permuted, channels_last, sliced, sliced_rows, expanded)


def as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous()


def in_form(inputs: Inputs, form: Form, others: Form) -> Any:
    """Returns the inputs with `form` applied to the first strided tensor and `others` to the remaining ones."""
    first = iter((form,))

    def convert(leaf: Any) -> Any:
        if leaf.layout != torch.strided or type(leaf) is not torch.Tensor:
            return leaf
        with torch.no_grad():
            return next(first, others)(leaf.detach()).requires_grad_(leaf.requires_grad)

    return pytree.tree_map_only(torch.Tensor, convert, inputs)


def arrangements(inputs: Inputs) -> Iterator[tuple[str, Any]]:
    """Yields (name, inputs): the inputs themselves, and every form that changes a stride."""
    yield "as it is", inputs
    plain = strides(inputs)
    for form in FORMS:
        for others, name in ((form, "all"), (as_it_is, "the first")):
            changed = in_form(inputs, form, others)
            if strides(changed) != plain:
                yield f"{form.__name__.replace('_', ' ')}, {name}", changed
            if len(plain) < 2:
                break


def strides(values: Any) -> list[Any]:
    """Returns the strides of all strided tensors in nested values."""
    return [tensor.stride() for tensor in tensors_in(values) if tensor.layout == torch.strided]


def layout_difference(ours: Any, theirs: Any) -> str | None:
    """Returns the first difference of strides, storage offsets, conjugate or negative bits in one line, or None."""
    mine, reference = tensors_in(ours), tensors_in(theirs)
    for one, other in zip(mine, reference, strict=False):
        if one.layout == other.layout == torch.strided and one.shape == other.shape and one.numel():
            for what, a, b in (
                ("strides", significant_strides(one), significant_strides(other)),
                ("storage offset", one.storage_offset(), other.storage_offset()),
                ("conjugate bit", one.is_conj(), other.is_conj()),
                ("negative bit", one.is_neg(), other.is_neg()),
            ):
                if a != b:
                    return f"{what} {a}, not {b}, of shape {tuple(one.shape)}"
    return None


def significant_strides(tensor: torch.Tensor) -> list[int]:
    """Returns the strides of the dimensions with more than one element."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def most_dimensions_first(samples: list[Any]) -> list[Any]:
    """Returns the samples sorted by the number of dimensions of all their tensors, the largest first."""
    return sorted(samples, key=lambda sample: -sum(tensor.dim() for tensor in tensors_in(inputs_of(sample))))


def check_layouts(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares strides and values of the samples in each layout, in dtypes that the CPU supports."""
    if not is_compared_dtype(op, dtype, report):
        return
    gradient = differentiable(op, dtype)
    for sample in report.choose(most_dimensions_first(samples_of(op, dtype, gradient)), SAMPLES):
        computation = Computation(op, sample, gradient)
        compared = has_determined_values(op, inputs_of(sample), computation)
        for name, inputs in arrangements(inputs_of(sample)):
            theirs = on_cpu(op, inputs, computation)
            args, kwargs = copy_inputs(op, inputs, device_under_test.device())
            ours = attempt(partial(computation, args, kwargs), device_under_test.device())
            is_bug = theirs.is_bug and ours.error is None
            if is_bug:  # some kernels of the CPU fail for these strides; their results for dense operands are right
                theirs = on_cpu(op, in_form(inputs, dense, dense), computation)
            if theirs.error is not None:
                if type(ours.error) is not type(theirs.error):
                    report.fail("layouts: error", f"{name}: {ours.describe()}; the CPU: {theirs.describe()}", sample)
                continue
            if ours.error is not None:
                report.fail("layouts: error", f"{name}: {ours.describe()}", sample)
                continue
            wrong = warning_difference(ours, theirs)
            if wrong:
                report.fail("layouts: warnings", f"{name}: {wrong}", sample)
            for part, mine, reference in zip(("result", "gradient"), ours.result, theirs.result, strict=True):
                wrong = layout_difference(mine, reference)
                if wrong and not is_bug:
                    report.fail(f"layouts: {part}", f"{name}: {wrong}", sample)
            if compared:
                wrong = difference(
                    ours.result, theirs.result, report.tolerance, may_be_on_cpu=tensors_in((args, kwargs))
                )
                if wrong:
                    report.fail("layouts: values", f"{name}: {wrong}", sample)
