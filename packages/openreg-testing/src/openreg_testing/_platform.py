# SPDX-License-Identifier: BSD-3-Clause
"""What differs between operating systems: forks, signals, and what a process is told of its parent's end."""

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
    """Calls it in every later child of this process, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=close)


def signal_at_end_of_parent(number: int) -> None:
    """Lets this process get the signal when its parent ends; Linux alone tells."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
