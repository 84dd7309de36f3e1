# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems: limits of memory."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def little_memory(size: int) -> Iterator[None]:
    """Returns a context manager that limits new mappings of the process to ``size`` bytes; no effect outside Linux."""
    if sys.platform != "linux":
        yield
        return
    import resource

    mapped = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = mapped + size
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
