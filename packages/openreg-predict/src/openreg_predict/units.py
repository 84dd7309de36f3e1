# SPDX-License-Identifier: BSD-3-Clause
"""Units of device descriptions and their values in SI units."""

from __future__ import annotations

# Maps a dimension to its units, and each unit to its value in SI units. A FLOP is one addition or one multiplication,
# as in data sheets.
UNITS: dict[str, dict[str, float]] = {
    "rate": {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15},
    "bandwidth": {"MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12},
    "size": {"KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    "time": {"ns": 1e-9, "us": 1e-6, "ms": 1e-3},
    "power": {"W": 1.0},
    "energy": {"nJ": 1e-9, "pJ": 1e-12},
}


def dimension_of(unit: str) -> str | None:
    """Returns the key of ``UNITS`` that contains the unit, or None if no dimension has it."""
    return next((dimension for dimension, units in UNITS.items() if unit in units), None)


def show_time(seconds: float) -> str:
    """Returns a time in the largest unit that does not exceed it, such as ``12.3 ms``.

    It has three digits; 1000 s or more are whole seconds. A number that rounds up to 1000 is written as 1e+03.
    """
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}" if seconds / factor < 1000 else f"{seconds / factor:.0f} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def show_bytes(size: float) -> str:
    """Returns a size with two decimals and a binary unit, such as ``1.50 GiB``; below 1 KiB, whole bytes."""
    for unit, factor in (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size:.0f} B"
