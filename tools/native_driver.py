# SPDX-License-Identifier: BSD-3-Clause
"""The simulated device alone, without torch: for other operating systems, and under sanitizers."""

from __future__ import annotations

from pathlib import Path

import nox

from tools._platform import DRIVER_LIBRARIES
from tools.packages import ROOT
from tools.stopwatch import Stopwatch

RUNTIME = ROOT / "packages" / "openreg-runtime"
PROJECT = RUNTIME / "tests" / "driver"
BUILD_TOOLS = ("cmake>=3.24", "ninja>=1.11")

# The systems besides Linux that torch has wheels for. Both come with libc++ as their C++ library.
CROSS_TARGETS = ("x86_64-windows-gnu", "aarch64-macos")


def cross_compile(session: nox.Session, stopwatch: Stopwatch) -> None:
    """Compiles and links the driver and its stress program for each target, and checks what the library exports."""
    with stopwatch.step(session.name, "install"):
        session.install(*BUILD_TOOLS, "ziglang==0.17.*", "lief>=0.17")
    cache = session.cache_dir.resolve()
    # Where zig keeps the C++ libraries that it compiles on first use of a target, which takes most of the time.
    env = {"ZIG_GLOBAL_CACHE_DIR": str(cache / "zig"), "ZIG_LOCAL_CACHE_DIR": str(cache / "zig")}
    libraries: list[str] = []
    for target in session.posargs or CROSS_TARGETS:
        build = cache / "build-trees" / f"driver-{target}"
        with stopwatch.step(session.name, target):
            session.run("cmake", *configure_cross(target, build), env=env)
            session.run("cmake", "--build", str(build), env=env)
        libraries += [str(build / name) for name in DRIVER_LIBRARIES if (build / name).exists()]
    check = str(ROOT / "tools" / "check_exports.py")
    session.run("python", check, str(RUNTIME / "include" / "openreg.h"), *libraries)


def configure_cross(target: str, build: Path) -> list[str]:
    """The arguments of CMake."""
    return [
        *("-S", str(PROJECT), "-B", str(build), "-G", "Ninja"),
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'tools' / 'zig.cmake'}",
        f"-DOPENREG_CROSS_TARGET={target}",
        # The name, for the tools of a session come first on its path.
        "-DOPENREG_CROSS_PYTHON=python",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DOPENREG_WARNINGS_AS_ERRORS=ON",
    ]


def run_sanitizer(session: nox.Session, stopwatch: Stopwatch, sanitizer: str) -> None:
    """Runs the stress program under a sanitizer, after seeing that the sanitizer reports planted faults."""
    with stopwatch.step(session.name, "install"):
        session.install(*BUILD_TOOLS)
    build = session.cache_dir.resolve() / "build-trees" / f"driver-{session.name}"
    with stopwatch.step(session.name, "stress"):
        script = str(PROJECT / "run_stress.py")
        session.run("python", script, sanitizer, "--build", str(build), *session.posargs)
