# SPDX-License-Identifier: BSD-3-Clause
"""The report of the checks of one entry of the table of operators (OpInfo) in one dtype."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from . import device_under_test
from .checks import CHECKS
from .entries import spread


@dataclass
class EntryReport:
    """The results of the checks of one entry and dtype.

    "The manifest lists" means that the file of the backend's expected failures has an entry for it.
    """

    name: str
    dtype: str
    checks: tuple[str, ...] = CHECKS  # those that are run
    # False if the run tests the entry in another dtype before. Some checks run only once per entry.
    is_first_dtype: bool = True
    variant_samples: int | None = None  # maximal number of samples of each check except "forward"
    most_samples: int | None = None  # maximal number of samples of "forward"
    tolerance: tuple[float, float] | None = None  # (relative, absolute)
    samples: int = 0  # samples that "forward" or "compiled" ran
    failures: dict[str, str] = field(default_factory=dict)  # failed check -> first reason
    fell_back: dict[str, int] = field(default_factory=dict)  # operator -> number of fallbacks to the CPU
    counts_fallbacks: bool = True  # False: the backend does not count fallbacks
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
