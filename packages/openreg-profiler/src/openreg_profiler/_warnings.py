# SPDX-License-Identifier: BSD-3-Clause
"""Issues warnings about profiles that are not complete. They name the line of the program that uses the profiler.

The native module (activity_profiler.cpp) calls the public functions, and needs this module to be imported already.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType

import torch

_TORCH = str(Path(torch.__file__).parent) + os.sep  # not the folder of torchvision, which begins alike
# By the number of a recording: the Python call that stopped it. An entry is removed when the trace is freed.
_stopped: dict[int, tuple[int, int, int]] = {}


def warn_of_incomplete_profile(problem: str) -> None:
    """Warns that a profile is not complete, on the thread that starts or stops it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_TORCH, __file__)):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"torch.profiler on openreg: the profile is not complete: {problem}", UserWarning, stacklevel=level)


def note_stop(recording: int) -> None:
    """Stores the Python call that stopped a recording."""
    _stopped[recording] = _running_call(sys._getframe().f_back)


def note_end_of_trace(recording: int) -> None:
    """Warns if one call both stops a recording and frees its trace, because then no caller has read the trace.

    PyTorch ends a running profile when it prepares another one, and discards its trace without a warning.
    """
    stopped = _stopped.pop(recording, None)
    if stopped is not None and stopped == _running_call(sys._getframe().f_back):
        warn_of_replaced_profile()


def warn_of_replaced_profile() -> None:
    """Warns that PyTorch has ended a profile because another one begins."""
    warn_of_incomplete_profile(
        "another profile begins before this one has ended, and PyTorch records one at a time; what it has is lost. "
        "Stop a profile before the next one starts"
    )


def _running_call(frame: FrameType | None) -> tuple[int, int, int]:
    """Returns the thread, its frame and the instruction that has not returned yet."""
    return threading.get_ident(), id(frame), frame.f_lasti if frame is not None else -1
