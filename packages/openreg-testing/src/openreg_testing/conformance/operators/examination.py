# SPDX-License-Identifier: BSD-3-Clause
"""Runs all checks of one entry of the table of operators (OpInfo) in one dtype, and reports the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from . import device_under_test, record
from .check_arguments import check_arguments
from .check_compiled import check_compiled
from .check_dtypes import check_dtypes
from .check_errors import check_errors
from .check_flags import check_flags
from .check_layouts import check_layouts
from .check_overloads import check_overloads
from .check_results import check_forward, check_noncontiguous
from .check_sparse import check_sparse
from .check_storages import check_storages
from .check_variants import check_inplace, check_out
from .check_writes import check_writes
from .comparison import tolerance_of
from .entries import dtypes_of, name_of, spread
from .tasks import ARGUMENTS, CHECKS, COMPILED, FLAGS, ONCE_PER_ENTRY, STORAGES, VARIANTS

VARIANT_CHECKS = dict(
    zip(
        VARIANTS,
        (check_noncontiguous, check_out, check_inplace, check_overloads, check_layouts, check_writes, check_sparse),
        strict=True,
    )
)
# Each of these runs without other checks.
ALONE = {
    ARGUMENTS: check_arguments,
    STORAGES: check_storages,
    COMPILED: check_compiled,
    FLAGS: check_flags,
}
ENTRY_CHECKS = dict(zip(ONCE_PER_ENTRY, (check_errors, check_dtypes), strict=True))  # run with one dtype per entry


@dataclass
class EntryReport:
    """The results of the checks of one entry and dtype.

    "The manifest lists" means that the file of the backend's expected failures has an entry for it.
    """

    name: str
    dtype: str
    checks: tuple[str, ...] = CHECKS  # those that are run
    variant_samples: int | None = None  # maximal number of samples of each check except "forward"
    most_samples: int | None = None  # maximal number of samples of "forward"
    tolerance: tuple[float, float] | None = None  # (relative, absolute)
    samples: int = 0  # samples that "forward" or "compiled" ran
    failures: dict[str, str] = field(default_factory=dict)  # failed check -> first reason
    fell_back: dict[str, int] = field(default_factory=dict)  # operator -> number of fallbacks to the CPU
    tells_fallbacks: bool = True  # False: the backend does not count fallbacks
    error_inputs: int = 0  # wrong inputs that were run
    asynchronous_errors: int = 0  # wrong inputs that caused an asynchronous error
    random_samples: int = 0  # samples whose results are random numbers
    exercised: list[str] = field(default_factory=list)  # operators that ran on the device
    flags: list[str] = field(default_factory=list)  # flags that kernels read when they run, as the manifest lists
    differences: list[str] = field(default_factory=list)  # checks that differ, as the manifest lists
    compiled: dict[str, Any] = field(default_factory=dict)  # counts of kernels, and why the CPU is no reference
    # Numbers of the cases (calls with one argument or storage changed) of ARGUMENTS or STORAGES to run: [first, end).
    cases: tuple[int, int | None] = (0, None)
    calls: int = 0  # cases that were run
    seconds: float = 0.0

    def includes(self, check: str) -> bool:
        """Returns True if a check is run."""
        return check in self.checks

    def choose(self, samples: list[Any], most: int) -> list[Any]:
        """Returns at most `most` of the samples, or at most `variant_samples` if that is set and smaller."""
        return spread(samples, min(most, self.variant_samples or most))

    def fail(self, check: str, reason: str, sample: Any = None) -> None:
        """Records a failure: the first reason of each check, or a difference that the manifest lists."""
        if check in device_under_test.manifest().operator(self.name).differs:
            if check not in self.differences:
                self.differences.append(check)
            return
        self.failures.setdefault(check, f"{reason} [{describe(sample)}]" if sample is not None else reason)

    def as_dictionary(self) -> dict[str, Any]:
        """Returns the report as a dictionary that can be pickled and written as JSON."""
        return asdict(self)


def describe(sample: Any) -> str:
    """Returns a short text of a sample: shapes and arguments."""
    try:
        text = str(sample.summary())
    except RuntimeError:  # summary() reads strides, which sparse tensors do not have
        text = repr(sample)
    return text[:300].replace("\n", " ")


def examine(
    op: Any,
    dtype: torch.dtype,
    checks: Sequence[str] = CHECKS,
    variant_samples: int | None = None,
    most_samples: int | None = None,
    record_operators: bool = False,
    cases: tuple[int, int | None] = (0, None),
) -> EntryReport:
    """Runs the checks and returns the report. An exception of a check or of the table counts as a failure.

    "forward" runs all samples, or at most `most_samples` of different kinds. `variant_samples` limits the samples of
    the other checks. With `record_operators`, the report names the operators that ran on the device.
    """
    report = EntryReport(
        op.full_name, name_of(dtype), tuple(checks), variant_samples, most_samples, tolerance_of(op, dtype)
    )
    report.tells_fallbacks = device_under_test.counts_fallbacks(device_under_test.device())
    report.cases = cases
    start = time.monotonic()
    device_under_test.reset_fallbacks(device_under_test.device())
    for name, alone in ALONE.items():
        if report.includes(name):
            run_guarded(report, name, alone, op, dtype, report)
            report.fell_back = device_under_test.fallbacks(device_under_test.device()) if name == COMPILED else {}
            report.seconds = time.monotonic() - start
            return report
    with record.operators(record_operators) as exercised:
        if report.includes("forward"):
            run_guarded(report, "forward", check_forward, op, dtype, report)
        report.fell_back = device_under_test.fallbacks(device_under_test.device())
        for name, check in VARIANT_CHECKS.items():
            if report.includes(name):
                run_guarded(report, name, check, op, dtype, report)
        for name, once in ENTRY_CHECKS.items():
            if report.includes(name) and dtype == dtypes_of(op)[0]:
                run_guarded(report, name, once, op, report)
    report.exercised = sorted(exercised)
    report.seconds = time.monotonic() - start
    return report


def run_guarded(report: EntryReport, name: str, check: Callable[..., Any], *args: Any) -> None:
    """Runs a check, and reports an exception of the check itself as a failure. Does nothing if the device was lost."""
    if device_under_test.unusable_reason():
        return
    try:
        check(*args)
    except Exception as error:
        first_line = "".join(str(error).strip().splitlines()[:1])
        report.fail(name, f"the check failed to run: {type(error).__name__}: {first_line}")
        device_under_test.reset(device_under_test.device())
    if device_under_test.unusable_reason():
        report.failures["process"] = device_under_test.unusable_reason()
