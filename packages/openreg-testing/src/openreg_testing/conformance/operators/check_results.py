# SPDX-License-Identifier: BSD-3-Clause
"""Forward and gradients, for a sample as it is and for its non-contiguous form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.testing._utils import wrapper_set_seed

from . import subject
from .check_random import draws, random_difference
from .comparison import difference
from .entries import UNINITIALISED, differentiable, samples_of, unlike
from .outcome import attempt, warning_difference
from .reference import in_wider_dtype, on_cpu
from .transfer import as_strided, copy_inputs, inputs_of, tensors_in

if TYPE_CHECKING:
    from .examination import Report

# These change nothing: the second one seeds the generators, which we do ourselves.
PLAIN_WRAPPERS = (OpInfo.__dataclass_fields__["gradcheck_wrapper"].default, wrapper_set_seed)
NONCONTIGUOUS_SAMPLES = 40


class Computation:
    """An operator applied to one sample, forward and, if wanted, backward, on whatever device its inputs are.

    `function` is called in its place where it is given: the operator after it was compiled.
    """

    def __init__(self, op: Any, sample: Any, gradient: bool, function: Any = None) -> None:
        self.op = op
        self.function = op.get_op() if function is None else function  # whose name the table's wrappers ask for
        self.sample = sample
        self.gradient = gradient
        self.forward_done = False

    def __call__(self, args: Any, kwargs: Any) -> Any:
        self.forward_done = False
        result = self.function(*args, **kwargs)
        self.forward_done = True
        return result, self.gradients(result, args, kwargs) if self.gradient else ()

    def gradients(self, result: Any, args: Any, kwargs: Any) -> Any:
        """Of all inputs that want one, for the same gradient of the results each time."""
        if self.op.gradcheck_wrapper not in PLAIN_WRAPPERS:
            result = self.op.gradcheck_wrapper(self.function, *args, **kwargs)
        result = self.sample.output_process_fn_grad(result)
        outputs = [as_strided(tensor) for tensor in tensors_in(result) if tensor.requires_grad]
        wanted = [tensor for tensor in tensors_in((args, kwargs)) if tensor.requires_grad]
        if not outputs or not wanted:
            return ()
        return torch.autograd.grad(outputs, wanted, [weights(tensor) for tensor in outputs], allow_unused=True)


def weights(tensor: torch.Tensor) -> torch.Tensor:
    """Small numbers that every floating dtype represents exactly."""
    ramp = ((torch.arange(tensor.numel()) % 17 - 8) / 8).view(tensor.shape)
    if tensor.is_complex():
        ramp = torch.complex(ramp, ramp / 2)
    return ramp.to(tensor.dtype).to(tensor.device)


def check_forward(op: Any, dtype: torch.dtype, report: Report) -> None:
    """The samples as the table has them; with gradients if the report asks for them."""
    gradient = differentiable(op, dtype) and report.wants("backward")
    samples = samples_of(op, dtype, gradient)
    samples = unlike(samples, report.most_samples or len(samples))
    report.samples = len(samples)
    for sample in samples:
        check_sample(op, dtype, sample, gradient, report, "forward")


def check_noncontiguous(op: Any, dtype: torch.dtype, report: Report) -> None:
    """Inputs whose elements do not follow each other."""
    gradient = differentiable(op, dtype)
    for sample in report.choose(samples_of(op, dtype, gradient), NONCONTIGUOUS_SAMPLES):
        check_sample(op, dtype, noncontiguous(sample), gradient, report, "noncontiguous")


def noncontiguous(sample: Any) -> Any:
    """The sample with other strides of all tensors that have some."""

    def change(value: Any) -> Any:
        is_dense = not isinstance(value, torch.Tensor) or value.layout == torch.strided
        return SampleInput(value).noncontiguous().input if is_dense else value  # type: ignore[no-untyped-call]

    is_dense = all(tensor.layout == torch.strided for tensor in tensors_in(inputs_of(sample)))
    return sample.noncontiguous() if is_dense else sample.transform(change)


def check_sample(op: Any, dtype: torch.dtype, sample: Any, gradient: bool, report: Report, check: str) -> None:
    """Compares one sample, and reports the first thing that is wrong under the name of the check."""
    computation = Computation(op, sample, gradient)
    inputs = inputs_of(sample)
    theirs = on_cpu(op, inputs, computation)
    has_no_gradient = gradient and theirs.error is not None and computation.forward_done
    args, kwargs = copy_inputs(op, inputs, subject.device())
    ours = attempt(lambda: computation(args, kwargs), subject.device())
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
            wrong = ours.error is None or type(ours.error) is not type(theirs.error)
            if wrong or dtype not in op.dtypes:
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
    host = tensors_in((args, kwargs))
    values = op.name not in UNINITIALISED
    for part, mine, reference in zip((check, "backward"), ours.result, theirs.result, strict=True):
        found = difference(mine, reference, tolerance, values=values, narrow=narrow, host=host)
        if found is None:
            continue
        if values and draws(op, inputs, computation):
            found = random_difference(op, inputs, computation, report)
            if found:
                report.fail("random", found, sample)
            return
        name = f"{check} gradient" if part == "backward" and check != "forward" else part
        report.fail(name, found, sample)
        return
