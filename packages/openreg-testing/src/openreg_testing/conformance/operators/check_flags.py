# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a kernel uses the values that PyTorch's flags, such as the default dtype, had at its launch.

The checks change flags between the launch and the execution of kernels. They run with the environment variables that
the manifest (the file of the backend's expected failures) lists as [flags] environment. These defer kernels until the
host waits. So every kernel runs after the change, except in an operator that waits itself. The manifest may list flags
that kernels read when they run.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import device_under_test
from .check_results import Computation
from .entries import UNINITIALIZED, differentiable, samples_of
from .flags import DETERMINISTIC, FLAGS, ONEDNN, Flag
from .outcome import CallOutcome, attempt, wait_for_device
from .report import EntryReport
from .transfer import Inputs, copy_inputs, densified, inputs_of, tensors_in

SAMPLES = 8
REPETITIONS = 3  # how often a run with the change has to differ, and a run without it has to agree


class FlagGroup:
    """A group of flags that change together, with the methods of a Flag."""

    def __init__(self, flags: Sequence[Flag]) -> None:
        self.flags = flags

    def change(self) -> None:
        """Sets the other value of each flag."""
        for flag in self.flags:
            flag.change()

    def restore(self) -> None:
        """Sets the default of each flag."""
        for flag in self.flags:
            flag.restore()


# If the flag that turns oneDNN off changed with the others, no kernel would read oneDNN's precision. So it changes
# separately.
ALL_BUT_ONEDNN = FlagGroup([flag for flag in FLAGS if flag != ONEDNN])


class OperatorNames(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that collects the names of the operators that a call runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def check_flags(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Changes every flag between launch and execution: once to its other value, and once from there to the default.

    Raises RuntimeError unless the variables of [flags] environment in the manifest are set in this process.
    """
    variables = device_under_test.manifest().flags_environment
    if not variables or any(os.environ.get(name) != value for name, value in variables.items()):
        raise RuntimeError(
            "the check of flags needs deferred kernels; set the variables of [flags] environment in the manifest"
        )
    if op.name in UNINITIALIZED:
        return
    gradient = differentiable(op, dtype)
    for sample in report.choose(samples_of(op, dtype, gradient), SAMPLES):
        case = DeferredSample(op, sample, gradient)
        alert = alert_differs(case)
        if alert:
            report.fail("flags", alert, sample)
        for changed_at_launch in (False, True):
            if case.reads_at_execution(ALL_BUT_ONEDNN, changed_at_launch):
                report_flags(case, ALL_BUT_ONEDNN.flags, changed_at_launch, report)
            if gradient:  # what has no gradient, such as integers, does not use oneDNN
                report_flags(case, [ONEDNN], changed_at_launch, report)


class DeferredSample:
    """One sample of an entry, whose kernels are deferred until the host waits."""

    def __init__(self, op: Any, sample: Any, gradient: bool) -> None:
        self.op = op
        self.sample = sample
        self.compute = Computation(op, sample, gradient)

    def inputs(self, device: str) -> Inputs:
        """Returns copies of the sample's inputs on a device."""
        inputs: Inputs = copy_inputs(self.op, inputs_of(self.sample), device)
        return inputs

    def run(self, flags: Flag | FlagGroup, at_launch: bool, at_run: bool) -> CallOutcome:
        """Runs the sample and returns its outcome.

        `at_launch` and `at_run` state whether the flags have their other values at the call and at the execution.
        """
        args, kwargs = self.inputs(device_under_test.device())
        device_under_test.synchronize()
        torch.manual_seed(2026)
        outcome = CallOutcome()
        try:
            if at_launch:
                flags.change()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    outcome.result = self.compute(args, kwargs)
                except Exception as error:
                    outcome.error = error
                    outcome.is_asynchronous = isinstance(error, torch.AcceleratorError)
                if at_run != at_launch:
                    flags.change() if at_run else flags.restore()
                wait_for_device(outcome)
                if outcome.error is None:
                    outcome.result = [densified(tensor).detach().cpu() for tensor in tensors_in(outcome.result)]
        finally:
            flags.restore()
        return outcome

    def reads_at_execution(self, flags: Flag | FlagGroup, at_launch: bool) -> str | None:
        """Returns the difference if the outcome changes whenever the flags change after the launch, else None.

        A difference without such a change has another cause: uninitialized memory, unseeded random numbers, or a
        library whose sums depend on the addresses of operands.
        """
        expected = self.run(flags, at_launch, at_launch)
        for _ in range(REPETITIONS):
            found = distinction(self.run(flags, at_launch, not at_launch), expected)
            if not found or distinction(self.run(flags, at_launch, at_launch), expected):
                return None
        return found

    def operators(self) -> set[str]:
        """Returns the names of the operators that the sample runs."""
        args, kwargs = self.inputs(device_under_test.device())
        with OperatorNames() as mode:
            attempt(lambda: self.compute(args, kwargs), device_under_test.device())
        names: set[str] = mode.names
        return names


def report_flags(case: DeferredSample, flags: Sequence[Flag], changed_at_launch: bool, report: EntryReport) -> None:
    """Tests the flags one by one, and reports those that change the outcome unless the manifest lists them."""
    to = "back" if changed_at_launch else "to another value"
    for flag in flags:
        found = case.reads_at_execution(flag, changed_at_launch)
        if not found:
            continue
        operators = case.operators()
        if any(
            item.flag == flag.name and operators & set(item.operators)
            for item in device_under_test.manifest().flag_readings
        ):
            report.flags.append(flag.name)
        else:
            report.fail("flags", f"{flag.name} set {to} after the launch: {found}", case.sample)


def alert_differs(case: DeferredSample) -> str | None:
    """Returns a difference under deterministic algorithms, or None.

    The device has to raise PyTorch's alert on the calling line if, and only if, the CPU does.
    """
    ours = case.run(DETERMINISTIC, True, True)
    theirs = error_on_cpu(case)
    has_alert = is_alert(theirs)
    if (
        ours.is_asynchronous
        or (has_alert and type(ours.error) is not type(theirs))
        or (not has_alert and is_alert(ours.error))
    ):
        expected = f"{type(theirs).__name__} on the calling line" if has_alert else "a result"
        return f"{DETERMINISTIC.name}: {ours.describe()}, not {expected}"
    return None


def is_alert(error: BaseException | None) -> bool:
    """Returns True for PyTorch's error of an operator that has no deterministic implementation."""
    return "does not have a deterministic implementation" in str(error)


def error_on_cpu(case: DeferredSample) -> BaseException | None:
    """Returns the exception of the call on the CPU under deterministic algorithms, or None."""
    args, kwargs = case.inputs("cpu")
    DETERMINISTIC.change()
    try:
        return attempt(lambda: case.compute(args, kwargs), "cpu").error
    finally:
        DETERMINISTIC.restore()


def distinction(one: CallOutcome, other: CallOutcome) -> str | None:
    """Returns the difference between two outcomes, or None. The numbers are compared exactly."""
    if one.error is not None or other.error is not None:
        return None if type(one.error) is type(other.error) else f"{one.describe()}, not {other.describe()}"
    if len(one.result) != len(other.result):
        return f"{len(one.result)} results, not {len(other.result)}"
    for mine, reference in zip(one.result, other.result, strict=True):
        if (mine.dtype, mine.shape) != (reference.dtype, reference.shape):
            return f"{mine.dtype} {tuple(mine.shape)}, not {reference.dtype} {tuple(reference.shape)}"
        # These dtypes represent every value of the narrower ones, and the operators below support them.
        wide = torch.complex128 if mine.is_complex() else torch.float64 if mine.is_floating_point() else torch.int64
        mine, reference = mine.to(wide), reference.to(wide)
        differs = ((mine != reference) & ~(mine.isnan() & reference.isnan())).any()
        if differs:
            return f"other numbers, by up to {(mine - reference).abs().max().item():.2g}"
    return None
