# SPDX-License-Identifier: BSD-3-Clause
"""One call, and what came of it: a result, an exception now, or an exception at the next synchronisation."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import record_function

DEVICE = "openreg"
ON_DEVICE = "conformance: on the device"  # marks, for the record of operators, the time spent there
FALLBACK = "UserWarning: operator "  # begins the warning of one; the reports count them


class StandardError:
    """What the process writes to its standard error, where that is a file.

    A kernel that warns on an engine thread warns there: no handler of Python's knows that thread.
    """

    path: Path | None = None

    @classmethod
    def size(cls):
        return cls.path.stat().st_size if cls.path else 0

    @classmethod
    def lines_since(cls, size):
        """Without the time and the place in the source that PyTorch puts before a warning."""
        if not cls.path or cls.path.stat().st_size == size:
            return []
        with cls.path.open("rb") as stream:
            stream.seek(size)
            text = stream.read().decode("utf-8", "replace")
        return [line.rpartition("] ")[2] for line in text.splitlines() if line.strip()]


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
    written = StandardError.size()
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
    messages = [f"{item.category.__name__}: {str(item.message)[:60]}" for item in caught]
    messages += [f"standard error: {line[:100]}" for line in StandardError.lines_since(written)]
    outcome.warnings = sorted(message for message in messages if not message.startswith(FALLBACK))
    return outcome


def warning_difference(ours, theirs):
    """What the device warns of and the CPU does not, or the other way round, in one line, or None."""
    mine, reference = set(ours.warnings), set(theirs.warnings)
    if mine == reference:
        return None
    return f"warnings {sorted(mine - reference)} too many, {sorted(reference - mine)} missing"


def run_on_device(call, outcome):
    try:
        outcome.result = call()
    except Exception as error:
        outcome.error = error
        outcome.late = isinstance(error, torch.AcceleratorError)
    wait_for_device(outcome)


def wait_for_device(outcome):
    """Adds what the device reports when it is asked to finish; one that an error stopped is reset."""
    try:
        torch.openreg.synchronize()
    except torch.AcceleratorError as error:
        if outcome.error is None:
            outcome.error, outcome.late = error, True
    if outcome.late:
        outcome.result = None
        torch.openreg.reset_device()
