# SPDX-License-Identifier: BSD-3-Clause
"""The outcome of one call: a result, an exception of the call, or an asynchronous error.

An asynchronous error is an exception of a kernel that a later call reports, here the synchronization after the call.
"""

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

from ..error_text import first_line
from . import device_under_test, record

FALLBACK = re.compile(r"^operator |fall(s|ing)? back")  # warnings of fallbacks, which reports count separately
# PyTorch emits these warnings once per process, for the CPU or for the device.
ONCE = re.compile(r"tensor support is in beta state|Sparse invariant checks are|ComplexHalf support is experimental")


class StandardError:
    """A reader of the process's standard error, if that is a file.

    A kernel that warns on an engine thread writes there, because Python's warning filters do not cover that thread.
    """

    stream: BinaryIO | None = None

    @classmethod
    def open(cls) -> None:
        """Opens the file for reading; until then, and if standard error is no file, nothing is read."""
        if cls.stream is None and stat.S_ISREG(os.fstat(2).st_mode):
            with contextlib.suppress(OSError):  # os.read() fails if it is open for writing only
                os.read(2, 0)
                cls.stream = os.fdopen(os.dup(2), "rb", buffering=0)

    @classmethod
    def size(cls) -> int:
        """Returns the size of the file in bytes, or 0 if nothing is read."""
        return os.fstat(2).st_size if cls.stream else 0

    @classmethod
    def lines_since(cls, size: int) -> list[str]:
        """Returns the lines written since the file had this size, without PyTorch's prefix of time and source line."""
        if cls.stream is None or cls.size() == size:
            return []
        cls.stream.seek(size)
        text = cls.stream.read().decode("utf-8", "replace")
        return [line.rpartition("] ")[2] for line in text.splitlines() if line.strip()]


@dataclass
class CallOutcome:
    """The outcome of a call: its result or exception, and its warnings."""

    result: Any = None
    error: Exception | None = None
    is_asynchronous: bool = False  # True: the error is an asynchronous one
    warnings: list[str] = field(default_factory=list)

    @property
    def is_bug(self) -> bool:
        """True if the error is a failed assertion of PyTorch's own code."""
        return "INTERNAL ASSERT FAILED" in str(self.error)

    def describe(self) -> str:
        """Returns the type and message of the exception in one line, or "a result"."""
        return "a result" if self.error is None else first_line(self.error)


def attempt(call: Callable[[], Any], device: str) -> CallOutcome:
    """Runs a call, synchronizes with the device and returns the outcome. Resets a device that an error stopped."""
    outcome = CallOutcome()
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
                run_on_device(call, outcome)
    kept = [item for item in caught if not FALLBACK.search(str(item.message)) and not ONCE.search(str(item.message))]
    messages = [f"{item.category.__name__}: {str(item.message)[:60]}" for item in kept]
    messages += [f"standard error: {line[:100]}" for line in StandardError.lines_since(written)]
    outcome.warnings = sorted(messages)
    return outcome


def warning_difference(ours: CallOutcome, theirs: CallOutcome) -> str | None:
    """Returns the warnings that only one of the two devices emits in one line, or None."""
    mine, reference = set(ours.warnings), set(theirs.warnings)
    if mine == reference:
        return None
    return f"warnings {sorted(mine - reference)} too many, {sorted(reference - mine)} missing"


def run_on_device(call: Callable[[], Any], outcome: CallOutcome) -> None:
    """Runs a call, synchronizes with the device and fills the outcome."""
    try:
        outcome.result = call()
    except Exception as error:
        outcome.error = error
        outcome.is_asynchronous = isinstance(error, torch.AcceleratorError)
    wait_for_device(outcome)


def wait_for_device(outcome: CallOutcome) -> None:
    """Synchronizes, and records an asynchronous error in the outcome. Resets a device that an error stopped."""
    try:
        device_under_test.synchronize()
    except RuntimeError as error:  # an AcceleratorError, if the backend uses that class
        outcome.error, outcome.is_asynchronous = outcome.error or error, True
    if outcome.is_asynchronous:
        outcome.result = None
        device_under_test.reset()
