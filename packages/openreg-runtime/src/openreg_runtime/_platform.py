# SPDX-License-Identifier: BSD-3-Clause
"""What differs between operating systems in Python; for C++ that is ``csrc/driver/platform/``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path


def let_loader_search(folders: Iterable[Path]) -> None:
    """Makes libraries in other packages' folders known to the loader where, unlike with an rpath, they are not."""
    if sys.platform == "win32":
        for folder in folders:
            if folder.is_dir():
                os.add_dll_directory(str(folder))
