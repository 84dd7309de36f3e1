# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of byte counts from and to text such as "512MiB"."""

from __future__ import annotations

import re

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def size_in_bytes(text: object) -> int:
    """Returns the bytes that a text such as "512MiB" means, or an integer unchanged. Raises ValueError otherwise."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text) if isinstance(text, str) else None
    units = {unit.lower(): factor for unit, factor in _UNITS.items()}
    if match is None or (match[2] or "B").lower() not in units:
        raise ValueError(f"expected a size such as 512MiB or 1.5GiB (units: {', '.join(_UNITS)}), got {text!r}")
    return int(float(match[1]) * units[(match[2] or "B").lower()])


def show_bytes(count: int) -> str:
    """Returns a size as text, in the largest unit that it reaches."""
    for unit in ("GiB", "MiB", "KiB"):
        if count >= _UNITS[unit]:
            return f"{count / _UNITS[unit]:.1f} {unit}"
    return f"{count} B"


def show_exactly(count: int) -> str:
    """Same as ``show_bytes()``, except that a size in a larger unit is followed by the number of bytes."""
    return f"{count} B" if count < _UNITS["KiB"] else f"{show_bytes(count)} ({count} B)"
