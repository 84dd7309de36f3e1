# SPDX-License-Identifier: BSD-3-Clause
"""One call, and what came of it: a result, an exception now, or an exception at the next synchronisation."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd.profiler import record_function

DEVICE = "openreg"
ON_DEVICE = "conformance: on the device"  # marks, for the record of operators, the time spent there


@dataclass
class Outcome:
    """What a call gave. A late error is one that the device reported after the call, when it was asked to finish."""

    result: Any = None
    error: Exception | None = None
    late: bool = False
    warnings: list[str] = field(default_factory=list)

    def describe(self):
        if self.error is None:
            return "a result"
        message = str(self.error).strip().split("\n")[0][:200]
        return f"{type(self.error).__name__}: {message}"


def attempt(call, device):
    """Calls, and waits for the device; a device that an error stopped is reset."""
    outcome = Outcome()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if device == "cpu":
            try:
                outcome.result = call()
            except Exception as error:
                outcome.error = error
        else:
            with record_function(ON_DEVICE):
                run_on_device(call, outcome)
    outcome.warnings = sorted(f"{item.category.__name__}: {str(item.message)[:60]}" for item in caught)
    return outcome


def run_on_device(call, outcome):
    try:
        outcome.result = call()
    except Exception as error:
        outcome.error = error
        outcome.late = isinstance(error, torch.AcceleratorError)
    try:
        torch.openreg.synchronize()
    except torch.AcceleratorError as error:
        if outcome.error is None:
            outcome.error, outcome.late = error, True
    if outcome.late:
        outcome.result = None
        torch.openreg.reset_device()
