# SPDX-License-Identifier: BSD-3-Clause
"""All checks of one entry and dtype, and the report of it."""

import time
from dataclasses import asdict, dataclass, field

import torch

from . import record
from .check_dtypes import check_dtypes
from .check_errors import check_errors
from .check_flags import check_flags
from .check_layouts import check_layouts
from .check_overloads import check_overloads
from .check_results import check_forward, check_noncontiguous
from .check_variants import check_inplace, check_out
from .check_writes import check_writes
from .comparison import tolerance_of
from .entries import dtypes_of, name_of, spread
from .exceptions import DIFFERENCES

VARIANT_CHECKS = {
    "noncontiguous": check_noncontiguous,
    "out": check_out,
    "in-place": check_inplace,
    "overloads": check_overloads,
    "layouts": check_layouts,
    "writes": check_writes,
}
ENTRY_CHECKS = {"errors": check_errors, "dtypes": check_dtypes}  # once per entry, whatever its dtypes
CHECKS = ("forward", "backward", *VARIANT_CHECKS, *ENTRY_CHECKS, "flags")


@dataclass
class Report:
    """What the checks found; failures are the first reason per check."""

    name: str
    dtype: str
    checks: tuple[str, ...] = CHECKS
    variant_samples: int | None = None
    tolerance: tuple[float, float] | None = None
    samples: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    fell_back: dict[str, int] = field(default_factory=dict)
    error_inputs: int = 0
    late_errors: int = 0
    random_samples: int = 0
    exercised: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def wants(self, check):
        return check in self.checks

    def choose(self, samples, most):
        """The samples that a check of variants takes: so many, or fewer where the caller wants to be quick."""
        return spread(samples, min(most, self.variant_samples or most))

    def fail(self, check, reason, sample=None):
        """Keeps the first reason of a check, or notes that it is a listed difference."""
        if check in DIFFERENCES.get(self.name, {}):
            if check not in self.differences:
                self.differences.append(check)
            return
        self.failures.setdefault(check, f"{reason} [{describe(sample)}]" if sample is not None else reason)

    def as_dictionary(self):
        return asdict(self)


def describe(sample):
    """The sample in short: shapes and arguments."""
    return sample.summary()[:300].replace("\n", " ")


def examine(op, dtype, checks=CHECKS, variant_samples=None, record_operators=False):
    """Runs the checks; an exception of the harness itself, or of the table, is a failure too."""
    report = Report(op.full_name, name_of(dtype), tuple(checks), variant_samples, tolerance_of(op, dtype))
    start = time.monotonic()
    if report.wants("flags"):  # alone: see worker.py
        guarded(report, "flags", check_flags, op, dtype, report)
        report.seconds = time.monotonic() - start
        return report
    torch.openreg.reset_fallback_stats()
    with record.operators(record_operators) as exercised:
        if report.wants("forward"):
            guarded(report, "forward", check_forward, op, dtype, report)
        report.fell_back = {name: stats.calls for name, stats in torch.openreg.fallback_stats().items()}
        for name, check in VARIANT_CHECKS.items():
            if report.wants(name):
                guarded(report, name, check, op, dtype, report)
        for name, check in ENTRY_CHECKS.items():
            if report.wants(name) and dtype == dtypes_of(op)[0]:
                guarded(report, name, check, op, report)
    report.exercised = sorted(exercised)
    report.seconds = time.monotonic() - start
    return report


def guarded(report, name, check, *args):
    try:
        check(*args)
    except Exception as error:
        report.fail(name, f"the check itself: {type(error).__name__}: {str(error).strip().splitlines()[:1]}")
        torch.openreg.reset_device()
