# SPDX-License-Identifier: BSD-3-Clause
"""Builds projects in C and C++ against the installed package, and runs their programs."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from driver._platform import IS_WINDOWS, PROGRAM_SUFFIX


def cmake(*arguments):
    """Runs CMake, in the environment's version where it has one; gives status and whole output."""
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = shutil.which("cmake", path=scripts)
    assert program is not None, "cmake is missing: pip install cmake ninja"
    result = subprocess.run(
        [program, *map(str, arguments)],
        env={**os.environ, "PATH": scripts},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    # CMake breaks its messages into lines.
    return result.returncode, " ".join(result.stdout.split())


def site_packages():
    """The folder that holds the CMake package; in an editable install not that of the sources."""
    for entry in map(Path, sys.path):
        if (entry / "openreg_runtime" / "lib" / "cmake" / "openreg_runtime").is_dir():
            return entry
    raise AssertionError("no installed openreg_runtime with a CMake package on sys.path")


def run(program):
    env = dict(os.environ)
    if IS_WINDOWS:
        torch = importlib.util.find_spec("torch").origin
        libraries = [site_packages() / "openreg_runtime" / "lib", Path(torch).parent / "lib"]
        env["PATH"] = os.pathsep.join([*map(str, libraries), env["PATH"]])
    return subprocess.run(
        [f"{program}{PROGRAM_SUFFIX}"], env=env, capture_output=True, text=True, check=False, timeout=240
    )
