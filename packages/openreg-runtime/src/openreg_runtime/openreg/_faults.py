# SPDX-License-Identifier: BSD-3-Clause
"""Failures that a test orders in advance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from openreg_runtime import _C


@contextmanager
def inject_faults(specification: str) -> Iterator[None]:
    """Arms faults for the time of the context, replacing all that were armed, and disarms what is left of them.

    ``specification`` is a comma-separated list of ``KIND:N`` or ``KIND:N@DEVICE``: the N-th operation of that kind from
    now on fails, on any device unless one is named. Kinds: ``alloc`` (the driver's allocation; the caching allocator
    tries again before it gives up), ``copy`` and ``launch`` (fail when they run, as a kernel does), ``lose`` (the
    device is lost for the rest of the process), and those of packages that were imported. Raises ValueError for another
    form (source: ``OPENREG_FAULTS``).
    """
    _C._set_faults(specification)
    try:
        yield
    finally:
        _C._set_faults(None)
