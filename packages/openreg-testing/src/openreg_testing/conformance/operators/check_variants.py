# SPDX-License-Identifier: BSD-3-Clause
"""Checks the out= and in-place overloads: the device handles each kind of operand as the CPU does."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import device_under_test
from .check_random import draws_random_numbers, has_determined_values
from .check_results import weights
from .comparison import difference
from .entries import UNINITIALIZED, differentiable, samples_of
from .outcome import CallOutcome, attempt
from .reference import in_wider_dtype, on_cpu
from .report import EntryReport
from .transfer import Inputs, copy_inputs, inputs_of, tensors_in

SAMPLES = 24
# torch.lu() copies its results into out= operands on any device.
COPIES_TO_ANY_DEVICE = {"lu"}
GARBAGE = 7  # the content of an out= operand before the call


# Each of these functions returns an out= operand for a result of the CPU, in one *form*. Failures contain its name.
def same_size(tensor: torch.Tensor) -> torch.Tensor:
    return torch.full_like(tensor, GARBAGE)


def other_strides(tensor: torch.Tensor) -> torch.Tensor:
    return torch.full(tensor.shape[::-1], GARBAGE, dtype=tensor.dtype).permute(tuple(range(tensor.dim()))[::-1])


def wrong_size(tensor: torch.Tensor) -> torch.Tensor:
    shape = (*tensor.shape[:-1], tensor.shape[-1] + 1) if tensor.dim() else (2,)
    return torch.full(shape, GARBAGE, dtype=tensor.dtype)


def no_elements(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=tensor.dtype)


def wider_dtype(tensor: torch.Tensor) -> torch.Tensor:
    dtype = torch.complex128 if tensor.is_complex() else torch.float64
    return torch.full_like(tensor, GARBAGE, dtype=dtype)


def narrower_dtype(tensor: torch.Tensor) -> torch.Tensor:
    dtype = torch.float32 if tensor.is_complex() else torch.int32 if tensor.is_floating_point() else torch.bool
    return torch.full_like(tensor, 1, dtype=dtype)


SAME_DTYPE_FORMS = (same_size, other_strides, wrong_size, no_elements)
OUT_FORMS = (*SAME_DTYPE_FORMS, wider_dtype, narrower_dtype)


def check_out(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares out= operands of the right and wrong size, of other strides, other dtypes and on the wrong device."""
    if not op.supports_out:
        return
    for sample in report.choose(samples_of(op, dtype), SAMPLES):
        inputs = inputs_of(sample)
        plain = on_cpu(op, inputs, lambda args, kwargs: op(*args, **kwargs))
        if plain.error is not None:
            wide = in_wider_dtype(op, inputs, dtype, lambda args, kwargs: op(*args, **kwargs))
            if wide is None:
                continue
            plain = wide
            args, kwargs = copy_inputs(op, inputs, device_under_test.device())
            ours = attempt(partial(op, *args, **kwargs), device_under_test.device())
            if ours.error is not None:
                continue  # the check "forward" reports this error
            dtypes = [tensor.dtype for tensor in tensors_in(ours.result)]
            leaves, structure = pytree.tree_flatten(plain.result)
            plain.result = structure.unflatten([leaf.to(kind) for leaf, kind in zip(leaves, dtypes, strict=True)])
        if not is_tensors(plain.result):
            continue
        values = has_determined_values(op, inputs, lambda args, kwargs: op(*args, **kwargs))
        for form in OUT_FORMS if dtype in op.dtypes else SAME_DTYPE_FORMS:
            operands = pytree.tree_map_only(torch.Tensor, form, plain.result)
            # The expected content of these forms is known. The CPU runs only if the device differs, because some of its
            # kernels write beyond an operand of other strides.
            expected = plain.result if form in (same_size, other_strides) else None
            name = form.__name__.replace("_", " ")
            if compare_out(op, dtype, inputs, operands, values, report, name, sample, expected):
                return
        if wrong_device(op, inputs, pytree.tree_map_only(torch.Tensor, same_size, plain.result), report, sample):
            return


def is_tensors(result: Any) -> bool:
    """Returns True for a strided tensor, and for a tuple or list of tensors."""
    if isinstance(result, torch.Tensor):
        return result.layout == torch.strided
    return isinstance(result, (tuple, list)) and all(isinstance(item, torch.Tensor) for item in result)


def compare_out(
    op: Any,
    dtype: torch.dtype,
    inputs: Inputs,
    operands: Any,
    values: bool,
    report: EntryReport,
    form: str,
    sample: Any,
    expected: Any,
) -> bool:
    """Compares an out= call with the CPU and returns True if it reported a failure.

    With an expected result, operands have to keep their memory and strides.
    """

    def compute(args: Any, kwargs: Any) -> Any:
        kwargs = dict(kwargs)
        before = [(tensor.data_ptr(), tensor.stride()) for tensor in tensors_in(kwargs["out"])]
        result = op(*args, **kwargs)
        operands = tensors_in(kwargs["out"])
        returned = [tensor.data_ptr() for tensor in tensors_in(result)] == [tensor.data_ptr() for tensor in operands]
        kept = [
            not tensor.numel() or (tensor.data_ptr(), tensor.stride()) == old
            for tensor, old in zip(operands, before, strict=True)
        ]
        return operands, returned, [] if expected is None else kept

    args, kwargs = inputs
    inputs = args, {**kwargs, "out": operands}
    ours_args, ours_kwargs = copy_inputs(op, inputs, device_under_test.device())
    ours = attempt(lambda: compute(ours_args, ours_kwargs), device_under_test.device())
    narrow = None
    if expected is not None:
        tensors = tensors_in(expected)
        known = CallOutcome((tensors, True, [True] * len(tensors)))
        of_wider = dtype if dtype not in op.dtypes else None
        if outcome_difference(ours, known, report, values, of_wider) is None:
            return False
    theirs = on_cpu(op, inputs, compute)
    if theirs.error is not None and dtype not in op.dtypes:
        wide = in_wider_dtype(op, inputs, dtype, compute)
        if wide is not None:
            theirs, narrow = wide, dtype
    found = outcome_difference(ours, theirs, report, values, narrow)
    # Some kernels of the CPU resize without the warning that PyTorch requires, so only a missing warning is reported.
    if found is None and form == "wrong size" and resizes(theirs) and not resizes(ours):
        found = f"warnings {ours.warnings}, not {theirs.warnings}"
    if found:
        report.fail("out", f"{form}: {found}", sample)
    return bool(found)


def resizes(outcome: CallOutcome) -> bool:
    """Returns True if a call warned that it resized its out= operand."""
    return any("resized" in message for message in outcome.warnings)


def outcome_difference(
    ours: CallOutcome, theirs: CallOutcome, report: EntryReport, values: bool = True, narrow: torch.dtype | None = None
) -> str | None:
    """Returns the difference between the exception types, or between the results, of two calls, or None."""
    if type(ours.error) is not type(theirs.error):
        return f"{ours.describe()}; the CPU: {theirs.describe()}"
    if ours.error is not None:
        return None
    return difference(ours.result, theirs.result, report.tolerance, values=values, narrow=narrow)


def wrong_device(op: Any, inputs: Inputs, operands: Any, report: EntryReport, sample: Any) -> bool:
    """Checks that out= operands on another device than the inputs are rejected. Returns True if it reported a failure.

    CPU tensors are tried as out= of inputs on the device, and tensors on the device as out= of CPU tensors.
    """
    args, kwargs = copy_inputs(op, inputs, "cpu")
    if tensors_in((args, kwargs)) and op.full_name not in COPIES_TO_ANY_DEVICE:
        there = copy_inputs(op, ((), {"out": operands}), device_under_test.device())[1]
        ours = attempt(lambda: op(*args, **{**kwargs, **there}), device_under_test.device())
        if ours.is_asynchronous or " device index " in f" {ours.describe()} ":
            report.fail("out", f"operands on the CPU: {ours.describe()}", sample)
            return True
    args, kwargs = copy_inputs(op, inputs, device_under_test.device())
    if not tensors_in((args, kwargs)) or op.full_name in COPIES_TO_ANY_DEVICE:
        return False
    ours = attempt(lambda: op(*args, **{**kwargs, "out": operands}), device_under_test.device())
    if ours.error is not None and not ours.is_asynchronous:
        return False
    report.fail("out", f"wrong device: {ours.describe()} instead of an exception", sample)
    return True


def check_inplace(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares the in-place overload, with gradients if the table lists them."""
    inplace = op.get_inplace()
    if inplace is None:
        return
    gradient = differentiable(op, dtype) and op.supports_inplace_autograd
    for sample in report.choose(samples_of(op, dtype, gradient), SAMPLES):
        inputs = inputs_of(sample)
        if not isinstance(sample.input, torch.Tensor):
            continue

        def compute(args: Any, kwargs: Any) -> Any:
            # Cloned only for a gradient: the clone of an expanded tensor is not expanded, and the device has to reject
            # expanded operands as the CPU does.
            target = args[0].clone() if args[0].requires_grad else args[0]
            result = inplace(target, *args[1:], **kwargs)
            differentiated = [tensor for tensor in tensors_in((args, kwargs)) if tensor.requires_grad]
            grads: tuple[torch.Tensor, ...] = ()
            if differentiated and isinstance(result, torch.Tensor) and result.requires_grad:
                grads = torch.autograd.grad([result], differentiated, [weights(result)], allow_unused=True)
            return target, result is target, grads

        theirs = on_cpu(op, inputs, compute)
        args, kwargs = copy_inputs(op, inputs, device_under_test.device())
        ours = attempt(partial(compute, args, kwargs), device_under_test.device())
        narrow = None
        if theirs.error is not None and dtype not in op.dtypes:
            wide = in_wider_dtype(op, inputs, dtype, compute)
            if wide is not None:
                theirs, narrow = wide, dtype
        values = op.name not in UNINITIALIZED
        found = outcome_difference(ours, theirs, report, values, narrow)
        if (
            found
            and values
            and ours.error is None
            and theirs.error is None
            and draws_random_numbers(op, inputs, compute)
        ):
            found = outcome_difference(ours, theirs, report, False, narrow)
        if found:
            report.fail("in-place", found, sample)
            return
