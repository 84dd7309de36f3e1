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
