# SPDX-License-Identifier: BSD-3-Clause
"""Warnings about profiles, on the line of the program that asked for one."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch

_TORCH = str(Path(torch.__file__).parent)


def warn_of_incomplete_profile(problem: str) -> None:
    """Called by the native part, on the thread that starts or stops the profile."""
    level, frame = 2, sys._getframe().f_back
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"torch.profiler on openreg: the profile is not complete: {problem}", UserWarning, stacklevel=level)


def warn_if_replaced() -> None:
    """Called by the native part when a profile has ended.

    PyTorch ends a profile that runs when it prepares the next one, and throws away what it has without a word.
    """
    caller = sys._getframe().f_back
    if caller is not None and caller.f_code.co_name == "_prepare_trace":
        warn_of_incomplete_profile(
            "another profile begins before this one has ended, and PyTorch records one at a time; what it has is lost. "
            "Stop a profile before the next one starts"
        )
