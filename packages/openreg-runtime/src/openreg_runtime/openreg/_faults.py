# SPDX-License-Identifier: BSD-3-Clause
"""Fault injection: makes an operation of the device fail on purpose, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from openreg_runtime import _C


@contextmanager
def inject_faults(specification: str) -> Iterator[None]:
    """A context that makes operations of the device fail.

    ``specification`` is a comma-separated list of ``KIND:N`` or ``KIND:N@DEVICE``, as in ``OPENREG_FAULTS``. The N-th
    operation of that kind after the beginning of the context fails, on any device or only on the given one. These
    faults replace all that were set before. At the end of the context no fault remains. Raises ValueError for another
    syntax.

    - ``alloc``: an allocation of the driver, which the caching allocator repeats before it raises an error.
    - ``copy``, ``launch``: the task fails when it runs, as a failing kernel does.
    - ``lose``: the device is lost until the process ends.
    - Imported packages may add kinds.
    """
    _C._set_faults(specification)
    try:
        yield
    finally:
        _C._set_faults(None)
