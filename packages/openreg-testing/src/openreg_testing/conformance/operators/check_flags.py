# SPDX-License-Identifier: BSD-3-Clause
"""Flags that change between launch and execution: what counts is the launch, but for what the manifest lists.

Runs under the environment of the manifest's [flags], where work is held back until the host waits for it: every kernel
runs after the change, and an operator that waits by itself is not held up.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import subject
from .check_results import Computation
from .entries import UNINITIALISED, differentiable, samples_of
from .flags import DETERMINISTIC, FLAGS, ONEDNN, Flag
from .outcome import Outcome, attempt, wait_for_device
from .transfer import Inputs, as_strided, copy_inputs, inputs_of, tensors_in

if TYPE_CHECKING:
    from .examination import Report

SAMPLES = 8
REPETITIONS = 3  # of what differs


class Group:
    """Several flags that change together."""

    def __init__(self, flags: Sequence[Flag]) -> None:
        self.flags = flags

    def change(self) -> None:
        for flag in self.flags:
            flag.change()

    def restore(self) -> None:
        for flag in self.flags:
            flag.restore()


# Without oneDNN nobody asks for its precision, so these do not change together.
MOST = Group([flag for flag in FLAGS if flag != ONEDNN])


class Record(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Names of the operators that a call is made of."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def check_flags(op: Any, dtype: torch.dtype, report: Report) -> None:
    """Every flag is changed while the kernels of a sample wait, to its other value and back."""
    held = subject.manifest().held_back
    if not held or any(os.environ.get(name) != value for name, value in held.items()):
        raise RuntimeError(
            "the manifest says how work is held back: [flags] environment; else the flags change too late"
        )
    if op.full_name in UNINITIALISED or op.name in UNINITIALISED:
        return
    gradient = differentiable(op, dtype)
    for sample in report.choose(samples_of(op, dtype, gradient), SAMPLES):
        case = Case(op, sample, gradient)
        alert = alert_differs(case)
        if alert:
            report.fail("flags", alert, sample)
        for changed_at_launch in (False, True):
            if case.reads_late(MOST, changed_at_launch):
                blame(case, MOST.flags, changed_at_launch, report)
            if gradient:  # kernels of integers do not ask for oneDNN
                blame(case, [ONEDNN], changed_at_launch, report)


class Case:
    """One sample of an entry, whose work is held back."""

    def __init__(self, op: Any, sample: Any, gradient: bool) -> None:
        self.op = op
        self.sample = sample
        self.compute = Computation(op, sample, gradient)

    def inputs(self, device: str) -> Inputs:
        inputs: Inputs = copy_inputs(self.op, inputs_of(self.sample), device)
        return inputs

    def run(self, flags: Flag | Group, at_launch: bool, at_run: bool) -> Outcome:
        """What the call gives with the flags changed, or not, when it is made and when its kernels run."""
        args, kwargs = self.inputs(subject.device())
        subject.synchronize(subject.device())
        torch.manual_seed(2026)
        outcome = Outcome()
        try:
            if at_launch:
                flags.change()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    outcome.result = self.compute(args, kwargs)
                except Exception as error:
                    outcome.error = error
                    outcome.late = isinstance(error, torch.AcceleratorError)
                if at_run != at_launch:
                    flags.change() if at_run else flags.restore()
                wait_for_device(outcome, subject.device())
                if outcome.error is None:
                    outcome.result = [as_strided(tensor).detach().cpu() for tensor in tensors_in(outcome.result)]
        finally:
            flags.restore()
        return outcome

    def reads_late(self, flags: Flag | Group, at_launch: bool) -> str | None:
        """How the outcome differs each time when the flags change in between, and never otherwise; or None.

        What differs by itself has another cause: memory that nobody wrote, random numbers that are not seeded, or a
        library whose sums depend on where its operands lie.
        """
        wanted = self.run(flags, at_launch, at_launch)
        for _ in range(REPETITIONS):
            found = distinction(self.run(flags, at_launch, not at_launch), wanted)
            if not found or distinction(self.run(flags, at_launch, at_launch), wanted):
                return None
        return found

    def operators(self) -> set[str]:
        args, kwargs = self.inputs(subject.device())
        with Record() as record:
            attempt(lambda: self.compute(args, kwargs), subject.device())
        names: set[str] = record.names
        return names


def blame(case: Case, flags: Sequence[Flag], changed_at_launch: bool, report: Report) -> None:
    """Finds the flags that make the difference, and reports those that are not listed for the sample's operators."""
    to = "back" if changed_at_launch else "to another value"
    for flag in flags:
        found = case.reads_late(flag, changed_at_launch)
        if not found:
            continue
        operators = case.operators()
        if any(item.flag == flag.name and operators & set(item.operators) for item in subject.manifest().read_late):
            report.flags.append(flag.name)
        else:
            report.fail("flags", f"{flag.name} set {to} after the launch: {found}", case.sample)


def alert_differs(case: Case) -> str | None:
    """What is wrong with the call under deterministic algorithms: where the CPU refuses it, it has to fail at once."""
    ours = case.run(DETERMINISTIC, True, True)
    theirs = on_cpu(case)
    refused = is_alert(theirs)
    if ours.late or (refused and type(ours.error) is not type(theirs)) or (not refused and is_alert(ours.error)):
        wanted = f"{type(theirs).__name__} at once" if refused else "a result"
        return f"{DETERMINISTIC.name}: {ours.describe()}, not {wanted}"
    return None


def is_alert(error: BaseException | None) -> bool:
    return "does not have a deterministic implementation" in str(error)


def on_cpu(case: Case) -> BaseException | None:
    """The exception of the CPU under deterministic algorithms."""
    args, kwargs = case.inputs("cpu")
    DETERMINISTIC.change()
    try:
        return attempt(lambda: case.compute(args, kwargs), "cpu").error
    finally:
        DETERMINISTIC.restore()


def distinction(one: Outcome, other: Outcome) -> str | None:
    """What distinguishes two outcomes, bit by bit, or None."""
    if one.error is not None or other.error is not None:
        return None if type(one.error) is type(other.error) else f"{one.describe()}, not {other.describe()}"
    if len(one.result) != len(other.result):
        return "another number of results"
    for mine, reference in zip(one.result, other.result, strict=True):
        if (mine.dtype, mine.shape) != (reference.dtype, reference.shape):
            return f"{mine.dtype} {tuple(mine.shape)}, not {reference.dtype} {tuple(reference.shape)}"
        # In dtypes that hold every value of the others and that every operator knows.
        wide = torch.complex128 if mine.is_complex() else torch.float64 if mine.is_floating_point() else torch.int64
        mine, reference = mine.to(wide), reference.to(wide)
        differs = ((mine != reference) & ~(mine.isnan() & reference.isnan())).any()
        if differs:
            return f"other numbers, by up to {(mine - reference).abs().max().item():.2g}"
    return None
