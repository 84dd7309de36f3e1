# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the machine has a C++ compiler and room on its disk for the first build, before any download."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from tools._platform import FINDS_COMPILERS_ITSELF

# Free bytes that the first build needs: for the build environment with torch, the build trees of all packages and an
# environment that uses them, as measured on Linux. All sessions together take about twice as much.
ROOM = 4 * 2**30

# The names of compilers for which CMake searches.
COMPILERS = ("c++", "g++", "clang++")


def compiler_command() -> list[str]:
    """Returns the command of the C++ compiler that CMake takes: that of CXX, or the first that is found; else empty."""
    named = shlex.split(os.environ.get("CXX", ""))
    return named or [program for program in COMPILERS if shutil.which(program)][:1]


def lacks_compiler() -> str | None:
    """Returns a message with the remedy if no C++ compiler is found; None if one is, or if CMAKE_ARGS names one."""
    if FINDS_COMPILERS_ITSELF or "CMAKE_CXX_COMPILER" in os.environ.get("CMAKE_ARGS", ""):
        return None
    command = compiler_command()
    if command and shutil.which(command[0]):
        return None
    if named := os.environ.get("CXX", "").strip():
        return f"CXX names a C++ compiler that is not there: {named}; correct it, or unset it"
    return (
        f"no C++ compiler was found ({', '.join(COMPILERS)}); install one with C++20, GCC 11 or Clang 14 or newer "
        "(apt-get install g++, dnf install gcc-c++, xcode-select --install), or name one by CXX"
    )


def lacks_room(folder: Path) -> str | None:
    """Returns a message with the remedy if a folder's disk is too full for the first build; None if it is not."""
    free = shutil.disk_usage(folder).free
    if free >= ROOM:
        return None
    return (
        f"{free / 2**30:.1f} GiB are free where {folder} is, and the first build takes {ROOM / 2**30:.0f} GiB; "
        "make room, or put the checkout on another disk"
    )
