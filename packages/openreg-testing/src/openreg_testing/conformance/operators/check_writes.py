# SPDX-License-Identifier: BSD-3-Clause
"""Checks writes to operands that are views of a larger memory, whose content afterwards must be that on the CPU.

That holds for the elements of the view and for those around it, the *guards*. The out= overloads get operands of
several shapes and strides, the in-place overloads operands that overlap. Each kind of operand is called a *form*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import device_under_test
from .check_layouts import is_compared_dtype, most_dimensions_first
from .check_random import has_determined_values
from .comparison import difference
from .entries import samples_of
from .outcome import CallOutcome, attempt, warning_difference
from .reference import on_cpu
from .report import EntryReport
from .transfer import Inputs, copy_inputs, inputs_of, tensors_in, whole_storage

SAMPLES = 6
GUARD = 24  # elements before and after the view that is written; no kernel may change them


def memory(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns numbers that no kernel writes by chance: `count` elements between two guards."""
    ramp = torch.arange(count + 2 * GUARD) * 7 % 23 + 101
    return (ramp % 2).bool() if dtype == torch.bool else ramp.to(dtype)


def dense(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Returns a contiguous view of this shape between two guards."""
    return memory(math.prod(shape), dtype)[GUARD:-GUARD].view(shape)


# Functions of a result that return an out= operand for it, or None if its shape does not allow the form.
def in_the_middle(result: Any) -> torch.Tensor:
    return dense(result.shape, result.dtype)


def transposed(result: Any) -> torch.Tensor:
    return dense(result.shape[::-1], result.dtype).permute(tuple(reversed(range(result.dim()))))


def with_strides(result: Any) -> torch.Tensor:
    """Returns an operand with the strides of the functional overload's result."""
    return memory(result.untyped_storage().nbytes() // result.element_size(), result.dtype).as_strided(
        result.shape, result.stride(), GUARD
    )


def sliced(result: Any) -> torch.Tensor:
    return dense((*result.shape, 2), result.dtype)[..., 0]


def sliced_rows(result: Any) -> torch.Tensor | None:
    return dense((2 * result.shape[0], *result.shape[1:]), result.dtype)[::2] if result.dim() else None


def too_small(result: Any) -> torch.Tensor | None:
    if not result.dim() or result.shape[0] < 2:
        return None
    return dense((result.shape[0] - 1, *result.shape[1:]), result.dtype)


def too_large(result: Any) -> torch.Tensor:
    shape = (*result.shape[:-1], result.shape[-1] + 1) if result.dim() else (2,)
    return dense(shape, result.dtype)


def too_large_and_sliced(result: Any) -> torch.Tensor:
    shape = (*result.shape[:-1], result.shape[-1] + 1) if result.dim() else (2,)
    return dense((*shape, 2), result.dtype)[..., 0]


def more_dimensions(result: Any) -> torch.Tensor:
    return dense((2, *result.shape), result.dtype)


def flat(result: Any) -> torch.Tensor:
    return dense((result.numel(),), result.dtype) if result.dim() != 1 else dense((result.numel(), 1), result.dtype)


def no_elements(result: Any) -> torch.Tensor:
    return dense((0,), result.dtype)


def no_elements_of_two_dimensions(result: Any) -> torch.Tensor:
    return dense((0, 3), result.dtype)


def expanded(result: Any) -> torch.Tensor | None:
    """Returns an expanded operand in memory for all elements, because some kernels of the CPU write all of them."""
    if not result.dim() or result.shape[0] < 2:
        return None
    return dense(result.shape, result.dtype)[:1].expand(result.shape)


def overlapping_rows(result: Any) -> torch.Tensor | None:
    """Returns an operand in which each part of the first dimension overlaps the part before."""
    if result.dim() < 2 or result.shape[0] < 2 or math.prod(result.shape[1:]) < 2:
        return None
    whole = dense(result.shape, result.dtype)
    return whole.as_strided(result.shape, (1, *whole.stride()[1:]))


OUT_FORMS = (
    in_the_middle,
    with_strides,
    transposed,
    sliced,
    sliced_rows,
    too_small,
    too_large,
    too_large_and_sliced,
    more_dimensions,
    flat,
    no_elements,
    no_elements_of_two_dimensions,
    expanded,
    overlapping_rows,
)
# For these the CPU is not needed, because their content is known. Some of its kernels write beyond such operands.
RIGHT_SIZE = (in_the_middle, with_strides, transposed, sliced, sliced_rows)


def form_name(form: Any) -> str:
    """Returns the name of a form in failures: that of its function, with spaces."""
    return str(form.__name__).replace("_", " ")


def state(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Returns everything that a write may change: the storage as a flat tensor, and sizes, strides and offset."""
    return whole_storage(tensor), tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def check_out_memory(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares the memory after out= calls with each form of operands."""
    if not op.supports_out:
        return
    for sample in report.choose(most_dimensions_first(samples_of(op, dtype)), SAMPLES):
        inputs = inputs_of(sample)
        plain = on_cpu(op, inputs, lambda args, kwargs: op(*args, **kwargs))
        results = tensors_in(plain.result)
        if plain.error is not None or not results or any(item.layout != torch.strided for item in results):
            continue
        values = has_determined_values(op, inputs, lambda args, kwargs: op(*args, **kwargs))
        for form in OUT_FORMS:
            operands = [form(tensor) for tensor in results]
            if any(operand is None for operand in operands):
                continue
            _, structure = pytree.tree_flatten(plain.result)
            out = structure.unflatten(operands)
            args, kwargs = inputs
            known = results if form in RIGHT_SIZE else None
            # Overlapping elements depend on the order of the writes.
            defined = values and form is not overlapping_rows
            compare(op, (args, {**kwargs, "out": out}), report, f"out {form_name(form)}", sample, defined, known)
        for name, out, changed in overlapping_operands(inputs, plain.result):
            args, kwargs = changed
            compare(op, (args, {**kwargs, "out": out}), report, f"out {name}", sample, values)


def overlapping_operands(inputs: Inputs, result: Any) -> Iterator[Any]:
    """Yields (name, out, arguments): out= is an operand, or begins one element after an operand in its memory."""
    args, kwargs = inputs
    if not isinstance(result, torch.Tensor):
        return
    for position, operand in enumerate(args):
        if not isinstance(operand, torch.Tensor) or (operand.shape, operand.dtype) != (result.shape, result.dtype):
            continue
        if operand.layout != torch.strided:
            continue
        for shift in (0, 1):
            whole = memory(operand.numel(), operand.dtype)
            mine = whole[GUARD:-GUARD].view(operand.shape).copy_(operand.detach())
            out = whole[GUARD + shift :][: operand.numel()].view(operand.shape)
            changed = (*args[:position], mine if shift else out, *args[position + 1 :])
            yield ("is operand", "partly overlaps operand")[shift] + f" {position}", out, (changed, kwargs)


def compare(
    op: Any, inputs: Inputs, report: EntryReport, name: str, sample: Any, values: bool, known: Any = None
) -> None:
    """Compares memory after an out= call with the CPU and reports a difference.

    With known results, a device that writes them and nothing else passes without the CPU.
    """

    def compute(args: Any, kwargs: Any) -> Any:
        result = op(*args, **kwargs)
        outs = tensors_in(kwargs["out"])
        returned = [one.data_ptr() == other.data_ptr() for one, other in zip(tensors_in(result), outs, strict=True)]
        return [state(out) for out in outs], returned

    args, kwargs = copy_inputs(op, inputs, device_under_test.device())
    ours = attempt(lambda: compute(args, kwargs), device_under_test.device())
    if known is not None and ours.error is None and not ours.warnings:
        expected = CallOutcome(
            ([state(write_result(result, out)) for result, out in known_places(op, known, inputs)], [True] * len(known))
        )
        if memory_difference(ours, expected, report, values) is None:
            return
    theirs = on_cpu(op, inputs, compute)
    found = memory_difference(ours, theirs, report, values)
    if found:
        report.fail(f"writes: {name}", found, sample)


def known_places(op: Any, known: Any, inputs: Inputs) -> Any:
    """Returns pairs of a known result and a copy of its out= operand on the CPU."""
    _, kwargs = copy_inputs(op, ((), {"out": inputs[1]["out"]}), "cpu", adds_device=False)
    return zip(known, tensors_in(kwargs["out"]), strict=True)


def write_result(result: Any, out: Any) -> Any:
    """Writes a result to its operand and returns the operand."""
    return out.copy_(result)


def memory_difference(ours: CallOutcome, theirs: CallOutcome, report: EntryReport, values: bool) -> str | None:
    """Returns the difference of errors, warnings or memory between two calls, or None. Guards must have equal bytes."""
    if type(ours.error) is not type(theirs.error):
        return f"{ours.describe()}; the CPU: {theirs.describe()}"
    found = warning_difference(ours, theirs)
    if ours.error is not None or found:
        return found
    found = difference(ours.result, theirs.result, report.tolerance, values=False)
    if not found and values:
        found = difference(inside(ours), inside(theirs), report.tolerance)
    return found or guard_difference(ours, theirs)


def written(outcome: CallOutcome) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields (memory, indices of the view's elements in it) for every view that was written to."""
    states, _ = outcome.result
    for whole, shape, stride, offset in states:
        yield whole, torch.arange(whole.numel()).as_strided(shape, stride, offset).reshape(-1)


def inside(outcome: CallOutcome) -> list[torch.Tensor]:
    """Returns the elements of each view that was written to."""
    return [whole[index.to(whole.device)] for whole, index in written(outcome)]


def guard_difference(ours: CallOutcome, theirs: CallOutcome) -> str | None:
    """Compares the bytes outside of the views. Returns a line if they differ, else None."""
    for (mine, index), (reference, _) in zip(written(ours), written(theirs), strict=True):
        outside = torch.ones(mine.numel(), dtype=torch.bool).index_fill_(0, index, False)
        if not same_bytes(mine.cpu()[outside], reference[outside]):
            return "neighbors of the view were written to"
    return None


def is_intact_around(out: torch.Tensor, before: torch.Tensor) -> bool:
    """Returns True if the memory outside of the view has the bytes of `before`, a copy on the CPU."""
    whole, shape, stride, offset = state(out)
    index = torch.arange(whole.numel()).as_strided(shape, stride, offset).reshape(-1)
    old = state(before)[0]
    outside = torch.ones(whole.numel(), dtype=torch.bool).index_fill_(0, index, False)[: old.numel()]
    return same_bytes(whole.cpu()[: old.numel()][outside], old[outside])


def same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns True if two tensors have equal bytes."""
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))


# Functions of the arguments that return them with other operands for an in-place overload, or None if that is
# impossible.
def self_in_the_middle(args: Any) -> Any:
    return (operand_like(in_the_middle, args[0]), *args[1:])


def self_transposed(args: Any) -> Any:
    return (operand_like(transposed, args[0]), *args[1:])


def self_sliced(args: Any) -> Any:
    return (operand_like(sliced, args[0]), *args[1:])


def self_expanded(args: Any) -> Any:
    return (operand_like(expanded, args[0]), *args[1:]) if expanded(args[0]) is not None else None


def self_with_overlapping_rows(args: Any) -> Any:
    return (operand_like(overlapping_rows, args[0]), *args[1:]) if overlapping_rows(args[0]) is not None else None


def operand_like(form: Callable[[torch.Tensor], torch.Tensor | None], tensor: torch.Tensor) -> torch.Tensor:
    """Returns an operand in a form, with the values of a tensor."""
    view = form(tensor)
    assert view is not None  # the callers check this
    if form is expanded:
        view[:1].copy_(tensor[:1])
    elif form is overlapping_rows:
        view[0].copy_(tensor[0])
    else:
        view.copy_(tensor)
    return view


def positions_like_first(args: Any) -> list[int]:
    """Returns the positions of tensors with the shape and dtype of the first argument."""
    first = args[0]
    return [
        position
        for position, other in enumerate(args)
        if position and isinstance(other, torch.Tensor) and (other.shape, other.dtype) == (first.shape, first.dtype)
    ]


def other_is_self(args: Any) -> Any:
    return replace_others(args, lambda _, first: first)


def other_partly_overlaps(args: Any) -> Any:
    return replace_others(args, lambda whole, first: whole[GUARD + 1 :][: first.numel()].view(first.shape))


def other_is_self_reversed(args: Any) -> Any:
    """Returns arguments whose other operands are the first one with its first and last dimension exchanged."""

    def view(_: torch.Tensor, first: torch.Tensor) -> torch.Tensor | None:
        if first.dim() < 2 or first.shape[0] != first.shape[-1]:
            return None
        return first.transpose(0, -1)

    return replace_others(args, view)


def other_begins_before(args: Any) -> Any:
    return replace_others(args, lambda whole, first: whole[GUARD - 1 :][: first.numel()].view(first.shape))


def replace_others(args: Any, view: Callable[[torch.Tensor, torch.Tensor], torch.Tensor | None]) -> Any:
    """Returns the arguments with `view(memory, first)` for each tensor like the first one, or None if there is none.

    `first` is a copy of the first argument, and `memory` the memory around it.
    """
    positions = positions_like_first(args)
    if not positions:
        return None
    whole = memory(args[0].numel(), args[0].dtype)
    first = whole[GUARD:-GUARD].view(args[0].shape).copy_(args[0])
    other = view(whole, first)
    if other is None:
        return None
    return tuple(first if i == 0 else other if i in positions else value for i, value in enumerate(args))


INPLACE_FORMS = (
    self_in_the_middle,
    self_transposed,
    self_sliced,
    self_expanded,
    self_with_overlapping_rows,
    other_is_self,
    other_partly_overlaps,
    other_begins_before,
    other_is_self_reversed,
)


def check_inplace_memory(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares the memory after in-place calls with each form of operands."""
    inplace = op.get_inplace()
    if inplace is None:
        return
    for sample in report.choose(most_dimensions_first(samples_of(op, dtype)), SAMPLES):
        args, kwargs = inputs_of(sample)
        if not isinstance(sample.input, torch.Tensor) or sample.input.layout != torch.strided:
            continue

        def compute(args: Any, kwargs: Any) -> Any:
            result = inplace(*args, **kwargs)
            return [state(args[0])], result is args[0]

        values = has_determined_values(op, (args, kwargs), lambda a, k: op(*a, **k))
        for form in INPLACE_FORMS:
            changed = form(args)
            if changed is None:
                continue
            inputs = changed, kwargs
            theirs = on_cpu(op, inputs, compute)
            ours_args, ours_kwargs = copy_inputs(op, inputs, device_under_test.device())
            ours = attempt(partial(compute, ours_args, ours_kwargs), device_under_test.device())
            defined = values and form is not self_with_overlapping_rows
            found = memory_difference(ours, theirs, report, defined)
            if found:
                report.fail(f"writes: in-place {form_name(form)}", found, sample)


def check_writes(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Runs both checks, in the dtypes in which the check of layouts runs."""
    if is_compared_dtype(op, dtype, report):
        check_out_memory(op, dtype, report)
        check_inplace_memory(op, dtype, report)
