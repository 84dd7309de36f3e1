# SPDX-License-Identifier: BSD-3-Clause
"""Contains the code of this folder that depends on the operating system."""

from __future__ import annotations

import os
import sys

IS_LINUX = sys.platform == "linux"
IS_WINDOWS = sys.platform == "win32"

# On Windows, CMake finds Visual Studio by the registry. On other systems, a compiler is on the path.
FINDS_COMPILERS_ITSELF = IS_WINDOWS

# Paths below a virtual environment. SITE_PACKAGES is a glob pattern.
SCRIPTS_FOLDER = "Scripts" if IS_WINDOWS else "bin"
SITE_PACKAGES = "Lib/site-packages" if IS_WINDOWS else "lib/python*/site-packages"
PYTHON_PROGRAM = "python.exe" if IS_WINDOWS else "python"

# The file names of the driver's library, when it is built for Windows (by zig), macOS and Linux.
DRIVER_LIBRARIES = ("libopenreg.dll", "libopenreg.dylib", "libopenreg.so")

LINUX_LIBRARY_SUFFIX = ".so"
MACOS_LIBRARY_SUFFIX = ".dylib"
MODULE_SUFFIX = ".so"  # of an extension module, on macOS too


def usable_cores() -> int:
    """Returns the number of cores on which this process may run."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
