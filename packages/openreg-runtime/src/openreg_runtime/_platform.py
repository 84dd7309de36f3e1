# SPDX-License-Identifier: BSD-3-Clause
"""Contains the Python code that depends on the operating system. Such C++ code is in ``csrc/driver/platform/``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path


def add_library_folders(folders: Iterable[Path]) -> None:
    """Makes the loader of Windows search these folders for libraries. Other systems find them by an rpath."""
    if sys.platform == "win32":
        for folder in folders:
            if folder.is_dir():
                os.add_dll_directory(str(folder))
