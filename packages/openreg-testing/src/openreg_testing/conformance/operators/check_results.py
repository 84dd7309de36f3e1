# SPDX-License-Identifier: BSD-3-Clause
"""Checks results and gradients of samples (SampleInput), contiguous and non-contiguous, against the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.testing._utils import wrapper_set_seed

from . import device_under_test
from .check_random import draws_random_numbers, random_difference
from .comparison import difference
from .entries import UNINITIALIZED, differentiable, of_each_kind, samples_of
from .outcome import attempt, warning_difference
from .reference import in_wider_dtype, on_cpu
from .report import EntryReport
from .transfer import copy_inputs, densified, inputs_of, tensors_in

# Values of OpInfo.gradcheck_wrapper that need not be called: the first only calls the operator; the second only seeds
# before that.
PLAIN_WRAPPERS = (OpInfo.__dataclass_fields__["gradcheck_wrapper"].default, wrapper_set_seed)
NONCONTIGUOUS_SAMPLES = 40


class Computation:
    """The application of an operator to one sample, forward and with `gradient` also backward.

    It runs on the device of its arguments. If given, `function` replaces the operator, for example by a compiled one.
    """

    def __init__(self, op: Any, sample: Any, gradient: bool, function: Any = None) -> None:
        self.op = op
        # get_op() returns the function itself: gradcheck wrappers read its `__name__`.
        self.function = op.get_op() if function is None else function
        self.sample = sample
        self.gradient = gradient
        self.forward_done = False

    def __call__(self, args: Any, kwargs: Any) -> Any:
        """Returns the result, and the gradients if they are requested, else an empty tuple."""
        self.forward_done = False
        result = self.function(*args, **kwargs)
        self.forward_done = True
        return result, self.gradients(result, args, kwargs) if self.gradient else ()

    def gradients(self, result: Any, args: Any, kwargs: Any) -> Any:
        """Returns the gradients of all inputs that require one, for fixed gradients of the results."""
        if self.op.gradcheck_wrapper not in PLAIN_WRAPPERS:
            result = self.op.gradcheck_wrapper(self.function, *args, **kwargs)
        result = self.sample.output_process_fn_grad(result)
        outputs = [densified(tensor) for tensor in tensors_in(result) if tensor.requires_grad]
        differentiated = [tensor for tensor in tensors_in((args, kwargs)) if tensor.requires_grad]
        if not outputs or not differentiated:
            return ()
        return torch.autograd.grad(outputs, differentiated, [weights(tensor) for tensor in outputs], allow_unused=True)


def weights(tensor: torch.Tensor) -> torch.Tensor:
    """Returns small numbers of a tensor's shape and dtype that every floating-point dtype represents exactly."""
    ramp = ((torch.arange(tensor.numel()) % 17 - 8) / 8).view(tensor.shape)
    if tensor.is_complex():
        ramp = torch.complex(ramp, ramp / 2)
    return ramp.to(tensor.dtype).to(tensor.device)


def check_forward(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares the table's samples, with gradients if the check "backward" is selected."""
    gradient = differentiable(op, dtype) and report.includes("backward")
    samples = samples_of(op, dtype, gradient)
    samples = of_each_kind(samples, report.most_samples or len(samples))
    report.samples = len(samples)
    for sample in samples:
        check_sample(op, dtype, sample, gradient, report, "forward")


def check_noncontiguous(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares the samples with non-contiguous inputs."""
    gradient = differentiable(op, dtype)
    for sample in report.choose(samples_of(op, dtype, gradient), NONCONTIGUOUS_SAMPLES):
        check_sample(op, dtype, noncontiguous(sample), gradient, report, "noncontiguous")


def noncontiguous(sample: Any) -> Any:
    """Returns the sample with other strides of its strided tensors."""

    def change(value: Any) -> Any:
        is_dense = not isinstance(value, torch.Tensor) or value.layout == torch.strided
        return SampleInput(value).noncontiguous().input if is_dense else value  # type: ignore[no-untyped-call]

    is_dense = all(tensor.layout == torch.strided for tensor in tensors_in(inputs_of(sample)))
    return sample.noncontiguous() if is_dense else sample.transform(change)


def check_sample(op: Any, dtype: torch.dtype, sample: Any, gradient: bool, report: EntryReport, check: str) -> None:
    """Compares one sample with the CPU, and reports the first difference under the name of the check."""
    computation = Computation(op, sample, gradient)
    inputs = inputs_of(sample)
    theirs = on_cpu(op, inputs, computation)
    has_no_gradient = gradient and theirs.error is not None and computation.forward_done
    args, kwargs = copy_inputs(op, inputs, device_under_test.device())
    ours = attempt(lambda: computation(args, kwargs), device_under_test.device())
    if check == "forward" and gradient and computation.forward_done and ours.error is not None:
        check = "backward"
    narrow = None
    if theirs.error is not None:
        if type(ours.error) is type(theirs.error) and dtype in op.dtypes:
            if has_no_gradient:
                check_sample(op, dtype, sample, False, report, check)
            return
        wide = in_wider_dtype(op, inputs, dtype, computation)
        if wide is None:
            report.fail(check, f"{ours.describe()}; the CPU, in any dtype, {theirs.describe()}", sample)
            return
        theirs, narrow = wide, dtype
    if ours.error is not None:
        report.fail(check, ours.describe(), sample)
        return
    if narrow is None:
        found = warning_difference(ours, theirs)
        if found:
            report.fail("warnings", found, sample)
    tolerance = report.tolerance
    operands = tensors_in((args, kwargs))
    values = op.name not in UNINITIALIZED
    for part, mine, reference in zip((check, "backward"), ours.result, theirs.result, strict=True):
        found = difference(mine, reference, tolerance, values=values, narrow=narrow, may_be_on_cpu=operands)
        if found is None:
            continue
        if values and draws_random_numbers(op, inputs, computation):
            found = random_difference(op, inputs, computation, report)
            if found:
                report.fail("random", found, sample)
            return
        name = f"{check} gradient" if part == "backward" and check != "forward" else part
        report.fail(name, found, sample)
        return
