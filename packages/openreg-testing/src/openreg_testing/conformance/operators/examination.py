# SPDX-License-Identifier: BSD-3-Clause
"""Runs checks of one entry of the table of operators (OpInfo) in one dtype, and reports the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
from .checks import ARGUMENTS, CHECKS, COMPILED, FLAGS, ONCE_PER_ENTRY, PROCESS, STORAGES, VARIANTS
from .comparison import tolerance_of
from .entries import dtypes_of, name_of
from .report import EntryReport

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


def examine(
    op: Any,
    dtype: torch.dtype,
    checks: Sequence[str] = CHECKS,
    variant_samples: int | None = None,
    most_samples: int | None = None,
    record_operators: bool = False,
    cases: tuple[int, int | None] = (0, None),
    is_first_dtype: bool | None = None,
) -> EntryReport:
    """Runs the checks and returns the report. An exception of a check or of the table counts as a failure.

    If one of ALONE is among the checks, only that one runs, and `record_operators` has no effect.

    "forward" runs all samples; with `most_samples`, at most so many, chosen to differ as far as possible.
    `variant_samples` limits the samples of the other checks. With `record_operators`, the report names the operators
    that ran on the device. `is_first_dtype` is False if the run tests the entry in another dtype before, so that some
    checks leave this one out; by default, the first dtype is that of dtypes_of(). `cases` are the first and the end of
    the numbered calls that "arguments" or "storages" runs.
    """
    report = EntryReport(
        op.full_name,
        name_of(dtype),
        tuple(checks),
        is_first_dtype=dtype == dtypes_of(op)[0] if is_first_dtype is None else is_first_dtype,
        variant_samples=variant_samples,
        most_samples=most_samples,
        tolerance=tolerance_of(op, dtype),
    )
    report.counts_fallbacks = device_under_test.counts_fallbacks()
    report.cases = cases
    start = time.monotonic()
    device_under_test.reset_fallbacks()
    for name, alone in ALONE.items():
        if report.includes(name):
            run_guarded(report, name, alone, op, dtype, report)
            report.fell_back = device_under_test.fallbacks() if name == COMPILED else {}
            report.seconds = time.monotonic() - start
            return report
    with record.operators(record_operators) as exercised:
        if report.includes("forward") or report.includes("backward"):  # a backward pass begins with the forward pass
            run_guarded(report, "forward", check_forward, op, dtype, report)
        report.fell_back = device_under_test.fallbacks()
        for name, check in VARIANT_CHECKS.items():
            if report.includes(name):
                run_guarded(report, name, check, op, dtype, report)
        for name, once in ENTRY_CHECKS.items():
            if report.includes(name) and report.is_first_dtype:
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
        device_under_test.reset()
    if device_under_test.unusable_reason():
        report.failures[PROCESS] = device_under_test.unusable_reason()
