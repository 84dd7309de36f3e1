# SPDX-License-Identifier: BSD-3-Clause
"""One call, and what came of it: a result, an exception now, or an exception at the next synchronisation."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import torch

from . import record, subject

FALLBACK = re.compile(r"^operator |fall(s|ing)? back")  # the warning of one; the reports count them
# PyTorch says so once per process, on whichever device comes first.
ONCE = re.compile(r"tensor support is in beta state|Sparse invariant checks are|ComplexHalf support is experimental")


class StandardError:
    """What the process writes to its standard error, where that is a file.

    A kernel that warns on an engine thread warns there: no handler of Python's knows that thread.
    """

    stream: BinaryIO | None = None

    @classmethod
    def open(cls) -> None:
        """Looks at it from now on."""
        if cls.stream is None and stat.S_ISREG(os.fstat(2).st_mode):
            with contextlib.suppress(OSError):  # it may be open for writing only
                os.read(2, 0)
                cls.stream = os.fdopen(os.dup(2), "rb", buffering=0)

    @classmethod
    def size(cls) -> int:
        return os.fstat(2).st_size if cls.stream else 0

    @classmethod
    def lines_since(cls, size: int) -> list[str]:
        """Without the time and the place in the source that PyTorch puts before a warning."""
        if cls.stream is None or cls.size() == size:
            return []
        cls.stream.seek(size)
        text = cls.stream.read().decode("utf-8", "replace")
        return [line.rpartition("] ")[2] for line in text.splitlines() if line.strip()]


@dataclass
class Outcome:
    """What a call gave. A late error is one that the device reported after the call, when it was asked to finish."""

    result: Any = None
    error: Exception | None = None
    late: bool = False
    warnings: list[str] = field(default_factory=list)

    @property
    def is_bug(self) -> bool:
        """Whether the error says of itself that it is PyTorch's: an assertion inside of a kernel."""
        return "INTERNAL ASSERT FAILED" in str(self.error)

    def describe(self) -> str:
        if self.error is None:
            return "a result"
        message = str(self.error).strip().split("\n")[0][:200]
        return f"{type(self.error).__name__}: {message}"


def attempt(call: Callable[[], Any], device: str) -> Outcome:
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
            with record.Recording.on_device():
                run_on_device(call, outcome, device)
    told = [item for item in caught if not FALLBACK.search(str(item.message)) and not ONCE.search(str(item.message))]
    messages = [f"{item.category.__name__}: {str(item.message)[:60]}" for item in told]
    messages += [f"standard error: {line[:100]}" for line in StandardError.lines_since(written)]
    outcome.warnings = sorted(messages)
    return outcome


def warning_difference(ours: Outcome, theirs: Outcome) -> str | None:
    """What the device warns of and the CPU does not, or the other way round, in one line, or None."""
    mine, reference = set(ours.warnings), set(theirs.warnings)
    if mine == reference:
        return None
    return f"warnings {sorted(mine - reference)} too many, {sorted(reference - mine)} missing"


def run_on_device(call: Callable[[], Any], outcome: Outcome, device: str) -> None:
    try:
        outcome.result = call()
    except Exception as error:
        outcome.error = error
        outcome.late = isinstance(error, torch.AcceleratorError)
    wait_for_device(outcome, device)


def wait_for_device(outcome: Outcome, device: str) -> None:
    """Adds what the device reports when it is asked to finish; one that an error stopped is reset."""
    try:
        subject.synchronize(device)
    except RuntimeError as error:  # an AcceleratorError, of a device that says so
        outcome.error, outcome.late = outcome.error or error, True
    if outcome.late:
        outcome.result = None
        subject.reset(device)
