# SPDX-License-Identifier: BSD-3-Clause
"""Shortens exceptions for reports."""

from __future__ import annotations


def first_line(error: BaseException) -> str:
    """Returns the type of an exception, and the first line of its text if it has one."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
