# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a file can be written, before time is spent on its content."""

from __future__ import annotations

import os
from pathlib import Path


def reason_unwritable(path: Path) -> str:
    """Returns why ``path`` cannot be written; empty if it can."""
    folder = path.absolute().parent
    if path.is_dir():
        return "it is a folder"
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if not os.access(path if path.exists() else folder, os.W_OK):
        return "this process must not write there"
    return ""


def refuse_unwritable(path: str | Path) -> None:
    """Raises OSError if ``path`` cannot be written."""
    reason = reason_unwritable(Path(path))
    if reason:
        raise OSError(f"{path} cannot be written: {reason}; name a file in a folder in which this process may write")
