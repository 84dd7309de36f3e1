# SPDX-License-Identifier: BSD-3-Clause
"""Functions that differ between operating systems."""

from __future__ import annotations

import os
from collections.abc import Callable


def after_fork_in_child(function: Callable[[], None]) -> None:
    """Calls the function in each forked child, on systems that have fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
