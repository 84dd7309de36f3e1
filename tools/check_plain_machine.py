# SPDX-License-Identifier: BSD-3-Clause
"""Runs a script where no compiler and no build tool can be found, and says so where one can.

usage: check_plain_machine.py SCRIPT
"""

from __future__ import annotations

import runpy
import shutil
import sys

BUILD_TOOLS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "nvcc", "cmake", "ninja", "make")


def main(script: str) -> None:
    """Ends the process with a message where a tool is on the path."""
    found = [path for path in map(shutil.which, BUILD_TOOLS) if path is not None]
    if found:
        raise SystemExit(f"check_plain_machine: this machine has {', '.join(found)}")
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
