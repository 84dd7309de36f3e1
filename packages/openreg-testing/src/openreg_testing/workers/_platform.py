# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems: forks, signals, and the signal at the end of a parent."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable

HAS_FORK = hasattr(os, "fork")
HAS_PREAD = hasattr(os, "pread")
IS_POSIX = os.name == "posix"
_PR_SET_PDEATHSIG = 1


def close_after_fork(close: Callable[[], object]) -> None:
    """Calls ``close`` in every child that this process forks later; no effect on a system without fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=close)


def signal_at_end_of_parent(number: int) -> None:
    """Makes Linux send this process a signal when its parent ends; no effect on other systems."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
