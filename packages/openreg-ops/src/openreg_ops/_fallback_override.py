# SPDX-License-Identifier: BSD-3-Clause
"""Makes operators run on the CPU although the device has kernels for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from openreg_ops import _minimal


@contextmanager
def fallback_operators(*operators: str) -> Iterator[None]:
    """A context in which these operators (``aten::op.overload``) fall back to the CPU, even if they have kernels.

    It helps to find the kernel that computes a wrong result. It applies to all threads of the process. No thread may
    run one of the operators while the context begins or ends. Contexts end in the reverse order of their beginning.
    Raises ValueError for a name that is no operator.
    """
    override = _minimal._FallbackOverride(list(operators))
    try:
        yield
    finally:
        override.release()
