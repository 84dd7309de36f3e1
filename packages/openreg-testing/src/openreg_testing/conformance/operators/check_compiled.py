# SPDX-License-Identifier: BSD-3-Clause
"""Checks torch.compile with Inductor against the CPU: results, calls of operators, and the number of graphs.

The number of generated kernels may differ, but if the CPU has some, the device must have some. If Inductor's code for
the CPU is itself wrong, only the loss of the device is a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from . import device_under_test
from .check_layouts import most_dimensions_first
from .check_random import draws_random_numbers
from .check_results import Computation
from .comparison import difference
from .entries import UNINITIALIZED, differentiable, samples_of
from .outcome import CallOutcome, attempt
from .reference import on_cpu
from .report import EntryReport
from .transfer import Inputs, copy_inputs, inputs_of, tensors_in


@dataclass
class Code:
    """Counts of the code that Inductor generated for a sample, forward and backward."""

    generated: int = 0  # generated kernels
    external: int = 0  # calls of operators
    breaks: int = 0  # graph breaks


def check_compiled(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compiles the entry's sample with the most dimensions, and compares it forward and backward with the CPU."""
    if not is_registered():
        report.fail("compiled", f"no code generator is registered with Inductor for {device_under_test.device()!r}")
        return
    gradient = differentiable(op, dtype)
    samples = most_dimensions_first(samples_of(op, dtype, gradient))
    if not samples:
        return
    sample = samples[0]
    inputs = inputs_of(sample)
    plain = Computation(op, sample, gradient)
    expected = on_cpu(op, inputs, plain)
    theirs, their_code = compiled(op, sample, gradient, inputs, "cpu")
    ours, our_code = compiled(op, sample, gradient, inputs, device_under_test.device())
    report.samples = 1
    report.compiled = {"ours": asdict(our_code), "cpu": asdict(their_code), "cpu_fails": ""}
    random = expected.error is None and draws_random_numbers(op, inputs, plain)
    values = not random and op.name not in UNINITIALIZED
    wrong = on_cpu_difference(theirs, expected, report.tolerance, values)
    if wrong:  # the compiled code for the CPU is no reference here, but the device has to stay usable
        report.compiled["cpu_fails"] = wrong
        if ours.is_asynchronous and not theirs.is_asynchronous:
            report.fail("compiled", f"the device is lost: {ours.describe()}", sample)
        return
    if ours.error is not None:
        report.fail("compiled", ours.describe(), sample)
        return
    operands = tensors_in(inputs)
    found = difference(ours.result, expected.result, report.tolerance, values=values, may_be_on_cpu=operands)
    if found and values:
        found = difference(ours.result, theirs.result, report.tolerance, may_be_on_cpu=operands)
    found = found or code_difference(our_code, their_code)
    if found:
        report.fail("compiled", found, sample)
    elif random:
        found = random_difference(op, sample, gradient, inputs)
        if found:
            report.fail("compiled", found, sample)


def is_registered() -> bool:
    """Returns True if a code generator for the device is registered with Inductor."""
    from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration

    init_backend_registration()
    return get_scheduling_for_device(device_under_test.device()) is not None


def compiled(op: Any, sample: Any, gradient: bool, inputs: Inputs, device: str) -> tuple[CallOutcome, Code]:
    """Compiles and runs a sample on a device. Returns the outcome and counts of the code. Clears Dynamo's caches."""
    from torch._dynamo.utils import counters
    from torch._inductor import metrics

    torch._dynamo.reset()
    metrics.reset()
    counters.clear()
    function = torch.compile(op.get_op())
    args, kwargs = copy_inputs(op, inputs, device)
    compute = Computation(op, sample, gradient, function)
    torch.manual_seed(2026)
    outcome = attempt(lambda: compute(args, kwargs), device)
    code = Code(
        metrics.generated_kernel_count,
        counters["inductor"]["extern_calls"],
        sum(counters["graph_break"].values()),
    )
    return outcome, code


def on_cpu_difference(
    theirs: CallOutcome, expected: CallOutcome, tolerance: tuple[float, float] | None, values: bool
) -> str | None:
    """Returns the difference between the CPU's compiled result and its uncompiled one, or None."""
    if expected.error is not None:
        return f"uncompiled: {expected.describe()}"
    if theirs.error is not None:
        return theirs.describe()
    return difference(theirs.result, expected.result, tolerance, values=values, may_be_on_cpu=tensors_in(theirs.result))


def code_difference(ours: Code, theirs: Code) -> str | None:
    """Returns a difference between the code for the device and for the CPU, or None.

    The device must not have more calls of operators or more graph breaks than the CPU, and it must have a generated
    kernel if the CPU has one.
    """
    if ours.external > theirs.external or (theirs.generated and not ours.generated):
        return (
            f"{ours.generated} kernels and {ours.external} calls of operators; "
            f"for the CPU {theirs.generated} kernels and {theirs.external} calls"
        )
    if ours.breaks > theirs.breaks:
        return f"{ours.breaks} graph breaks; for the CPU {theirs.breaks}"
    return None


def random_difference(op: Any, sample: Any, gradient: bool, inputs: Inputs) -> str | None:
    """Returns an error or a difference if compiled code does not repeat random numbers after one seed, else None."""
    once: Callable[[], CallOutcome] = lambda: compiled(op, sample, gradient, inputs, device_under_test.device())[0]  # noqa: E731
    first, again = once(), once()
    for outcome in (first, again):
        if outcome.error is not None:
            return outcome.describe()
    on_host = [tensor.detach().cpu() for tensor in tensors_in(first.result)]
    found = difference(again.result, on_host)
    return f"two calls after one seed returned different numbers: {found}" if found else None
