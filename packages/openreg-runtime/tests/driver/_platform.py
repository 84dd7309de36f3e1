# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems, for all tests of this package."""

from __future__ import annotations

import ctypes
import os
import sys

IS_LINUX = sys.platform == "linux"
IS_WINDOWS = sys.platform == "win32"
IS_POSIX = os.name == "posix"
HAS_FORK = hasattr(os, "fork")
PAGE_SIZE = 4096 if IS_WINDOWS else os.sysconf("SC_PAGESIZE")

DRIVER_LIBRARY = {"win32": "openreg.dll", "darwin": "libopenreg.dylib"}.get(sys.platform, "libopenreg.so")
PROGRAM_SUFFIX = ".exe" if IS_WINDOWS else ""
MODULE_SUFFIX = ".dll" if IS_WINDOWS else ".so"  # of what CMake calls a module, on macOS too
SCRIPTS_FOLDER = "Scripts" if IS_WINDOWS else "bin"


def c_library() -> ctypes.CDLL | None:
    """The C library of this process, where its functions serve as native kernels."""
    return ctypes.CDLL(None) if IS_POSIX else None
