# SPDX-License-Identifier: BSD-3-Clause
"""Reference results of collectives in NumPy, independent of torch, Gloo and this package."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

UFUNCS = {
    "SUM": np.add,
    "PRODUCT": np.multiply,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}


def reduced(values: Sequence[np.ndarray], operation: str) -> np.ndarray:
    """The values of all ranks reduced: bool as "or" for a sum and "and" for a product."""
    values = [np.asarray(value) for value in values]
    dtype = values[0].dtype
    if dtype == np.bool_ and operation in ("SUM", "PRODUCT"):
        operation = {"SUM": "MAX", "PRODUCT": "MIN"}[operation]
    with np.errstate(all="ignore"):
        if operation == "AVG":
            total = np.add.reduce(values, dtype=dtype)
            if np.issubdtype(dtype, np.integer):
                toward_zero = np.where((total < 0) & (total % len(values) != 0), 1, 0).astype(dtype)
                return total // len(values) + toward_zero
            return total / len(values)
        return UFUNCS[operation].reduce(values, dtype=dtype)
