# SPDX-License-Identifier: BSD-3-Clause
"""Running operators on the CPU although the device has kernels for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from openreg_ops import _minimal


@contextmanager
def fallback_operators(*operators: str) -> Iterator[None]:
    """Context in which these operators (``aten::op.overload``) fall back to the CPU, whichever kernels they have.

    It answers whether a kernel of the device is the one that gives a wrong result. It holds for all threads of the
    process, none of which may run one of the operators while the context begins or ends. Contexts end in the reverse
    order of their beginning. Raises ValueError for a name that is no operator.
    """
    override = _minimal._FallbackOverride(list(operators))
    try:
        yield
    finally:
        override.release()
