# SPDX-License-Identifier: BSD-3-Clause
"""All checks of one entry and dtype, and the report of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from . import record, subject
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
from .tasks import APART, ARGUMENTS, CHECKS, COMPILED, ONCE_PER_ENTRY, STORAGES, VARIANTS

VARIANT_CHECKS = dict(
    zip(
        VARIANTS,
        (check_noncontiguous, check_out, check_inplace, check_overloads, check_layouts, check_writes, check_sparse),
        strict=True,
    )
)
ALONE = {  # with no other check in one process
    ARGUMENTS: check_arguments,
    STORAGES: check_storages,
    COMPILED: check_compiled,
    APART: check_flags,
}
ENTRY_CHECKS = dict(zip(ONCE_PER_ENTRY, (check_errors, check_dtypes), strict=True))  # whatever its dtypes


@dataclass
class Report:
    """What the checks found; failures are the first reason per check."""

    name: str
    dtype: str
    checks: tuple[str, ...] = CHECKS
    variant_samples: int | None = None
    most_samples: int | None = None
    tolerance: tuple[float, float] | None = None
    samples: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    fell_back: dict[str, int] = field(default_factory=dict)
    tells_fallbacks: bool = True
    error_inputs: int = 0
    late_errors: int = 0
    random_samples: int = 0
    exercised: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    compiled: dict[str, Any] = field(default_factory=dict)  # counts of kernels, and why the CPU is no measure
    cases: tuple[int, int | None] = (0, None)  # what to try of ARGUMENTS or STORAGES: the first, and beyond the last
    calls: int = 0  # of such cases
    seconds: float = 0.0

    def wants(self, check: str) -> bool:
        return check in self.checks

    def choose(self, samples: list[Any], most: int) -> list[Any]:
        """The samples that a check of variants takes: so many, or fewer where the caller wants to be quick."""
        return spread(samples, min(most, self.variant_samples or most))

    def fail(self, check: str, reason: str, sample: Any = None) -> None:
        """Keeps the first reason of a check, or notes that it is a listed difference."""
        if check in subject.manifest().operator(self.name).differs:
            if check not in self.differences:
                self.differences.append(check)
            return
        self.failures.setdefault(check, f"{reason} [{describe(sample)}]" if sample is not None else reason)

    def as_dictionary(self) -> dict[str, Any]:
        return asdict(self)


def describe(sample: Any) -> str:
    """The sample in short: shapes and arguments."""
    try:
        text = str(sample.summary())
    except RuntimeError:  # which asks tensors for their strides, of which sparse ones have none
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
) -> Report:
    """Runs the checks; an exception of the harness itself, or of the table, is a failure too.

    Of the samples "forward" takes all, or at most so many that are unlike each other.
    """
    report = Report(op.full_name, name_of(dtype), tuple(checks), variant_samples, most_samples, tolerance_of(op, dtype))
    report.tells_fallbacks = subject.tells_fallbacks(subject.device())
    report.cases = cases
    start = time.monotonic()
    subject.reset_fallbacks(subject.device())
    for name, alone in ALONE.items():
        if report.wants(name):
            guarded(report, name, alone, op, dtype, report)
            report.fell_back = subject.fallbacks(subject.device()) if name == COMPILED else {}
            report.seconds = time.monotonic() - start
            return report
    with record.operators(record_operators) as exercised:
        if report.wants("forward"):
            guarded(report, "forward", check_forward, op, dtype, report)
        report.fell_back = subject.fallbacks(subject.device())
        for name, check in VARIANT_CHECKS.items():
            if report.wants(name):
                guarded(report, name, check, op, dtype, report)
        for name, once in ENTRY_CHECKS.items():
            if report.wants(name) and dtype == dtypes_of(op)[0]:
                guarded(report, name, once, op, report)
    report.exercised = sorted(exercised)
    report.seconds = time.monotonic() - start
    return report


def guarded(report: Report, name: str, check: Callable[..., Any], *args: Any) -> None:
    if subject.spent():
        return
    try:
        check(*args)
    except Exception as error:
        report.fail(name, f"the check itself: {type(error).__name__}: {str(error).strip().splitlines()[:1]}")
        subject.reset(subject.device())
    if subject.spent():
        report.failures["process"] = subject.spent()
