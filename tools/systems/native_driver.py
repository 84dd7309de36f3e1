# SPDX-License-Identifier: BSD-3-Clause
"""Builds and tests the C++ that needs no torch, such as the driver: for other systems, and under sanitizers.

Emulators run programs of other systems here. They are not on PyPI, so they must be installed before.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import nox

from tools._platform import DRIVER_LIBRARIES, usable_cores
from tools.packages import BUILD_TOOLS, DRIVER, ROOT, refuse
from tools.sessions.lock import lock
from tools.sessions.stopwatch import Stopwatch

RUNTIME = ROOT / "packages" / "openreg-runtime"
PROJECT = RUNTIME / "tests" / "stress"
# The file that describes a stress program of a package, beside its CMakeLists.txt (run_stress.py).
STRESS = "stress.json"
ZIG = "ziglang==0.17.*"
TIDY = "clang-tidy==23.1.4"
# Faulty code that each check of .clang-tidy has to report.
FAULTS = {
    "bugprone-exception-escape": "void escape() noexcept { throw 1; }",
    "cppcoreguidelines-avoid-non-const-global-variables": "int changes = 0;",
    "readability-identifier-naming": "class snake_case {};",
}

# The systems besides Linux for which torch has wheels. The C++ library of both targets is libc++.
CROSS_TARGETS = ("x86_64-windows-gnu", "aarch64-macos")


def cross_compile(session: nox.Session, stopwatch: Stopwatch) -> None:
    """Compiles and links the driver and its programs for each target, and checks what the library exports."""
    lock(session.cache_dir)
    with stopwatch.step(session.name, "install"):
        session.install(*BUILD_TOOLS, ZIG, "lief>=0.17")
    libraries: list[str] = []
    for target in session.posargs or CROSS_TARGETS:
        with stopwatch.step(session.name, target):
            build = build_cross(session, target)
        found = [str(build / name) for name in DRIVER_LIBRARIES if (build / name).exists()]
        if not found:
            session.error(f"{target}: none of {', '.join(DRIVER_LIBRARIES)} is in {build}, and so nothing was checked")
        libraries += found
    check = str(ROOT / "tools" / "systems" / "check_exports.py")
    session.run("python", check, str(ROOT / DRIVER / "include" / "openreg.h"), *libraries)


def run_emulated(session: nox.Session, stopwatch: Stopwatch) -> None:
    """Builds the driver for each target that has an emulator, and runs its C++ tests under the emulator."""
    targets = session.posargs or list(EMULATORS)
    unknown = set(targets) - set(EMULATORS)
    if unknown:
        refuse(f"emulated: nothing runs {', '.join(sorted(unknown))}; choose of {', '.join(EMULATORS)}")
    problem = missing(targets)
    if problem:
        refuse(f"emulated: {problem}")
    lock(session.cache_dir)
    with stopwatch.step(session.name, "install"):
        session.install(*BUILD_TOOLS, ZIG)
    # WINEPREFIX is the folder of Wine's virtual disk. The other variables switch off debug output, and offers to
    # download components that these programs do not use.
    wine = {
        "WINEPREFIX": str(session.cache_dir.resolve() / "wine"),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml=",
    }
    for target in targets:
        with stopwatch.step(session.name, f"build for {target}"):
            build = build_cross(session, target)
        with stopwatch.step(session.name, f"run {target}"):
            session.run("ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error", env=wine)


def zig_environment(session: nox.Session) -> dict[str, str]:
    """Returns the variables that make zig keep its caches in nox's folder.

    zig compiles the C++ libraries of a target on its first use, which takes most of the time.
    """
    folder = str(session.cache_dir.resolve() / "zig")
    return {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}


def build_cross(session: nox.Session, target: str) -> Path:
    """Builds the project of the driver's programs for a target, and returns the build folder."""
    build = session.cache_dir.resolve() / "build-trees" / f"native-{target}"
    session.run("cmake", "-S", str(PROJECT), "-B", str(build), *configure_cross(target), env=zig_environment(session))
    session.run("cmake", "--build", str(build), env=zig_environment(session))
    return build


def configure_cross(target: str) -> list[str]:
    """Returns the arguments of CMake for a target, for any project."""
    return [
        *("-G", "Ninja"),
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'tools' / 'systems' / 'zig.cmake'}",
        f"-DOPENREG_CROSS_TARGET={target}",
        # A name instead of a path, because the programs of a session come first on its path.
        "-DOPENREG_CROSS_PYTHON=python",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DOPENREG_WARNINGS_AS_ERRORS=ON",
        f"-DCMAKE_CROSSCOMPILING_EMULATOR={';'.join(command(target))}",
    ]


def brought_programs() -> list[Path]:
    """Returns the folders of the stress programs that packages provide."""
    return sorted(path.parent for path in ROOT.glob(f"packages/*/tests/*/{STRESS}"))


def run_sanitizer(session: nox.Session, stopwatch: Stopwatch, sanitizer: str, seconds: int = 8) -> None:
    """Runs the stress programs under a sanitizer, after a check that the sanitizer reports planted faults.

    Each program runs for `seconds`, unless the arguments of the session change that.
    """
    lock(session.cache_dir)
    with stopwatch.step(session.name, "install"):
        session.install(*BUILD_TOOLS)
    build = session.cache_dir.resolve() / "build-trees" / f"native-{sanitizer}"
    with stopwatch.step(session.name, f"stress, {sanitizer}"):
        script = str(PROJECT / "run_stress.py")
        also = [argument for folder in brought_programs() for argument in ("--also", str(folder))]
        arguments = ("--build", str(build), "--seconds", str(seconds), *also, *session.posargs)
        session.run("python", script, sanitizer, *arguments)


def run_tidy(session: nox.Session, stopwatch: Stopwatch) -> None:
    """Runs clang-tidy on the C++ that needs no torch, after a check that it reports a planted fault of each kind."""
    lock(session.cache_dir)
    with stopwatch.step(session.name, "install"):
        session.install(*BUILD_TOOLS, TIDY)
    build = session.cache_dir.resolve() / "build-trees" / "native-tidy"
    folders = f"-DOPENREG_STRESS_FOLDERS={';'.join(folder.as_posix() for folder in brought_programs())}"
    # clang-tidy selects files by their names, and a unity build does not compile them one by one.
    each_file = ("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DOPENREG_UNITY_BUILD=OFF")
    session.run("cmake", "-S", str(PROJECT), "-B", str(build), "-G", "Ninja", *each_file, folders)
    planted = build / "planted.cpp"
    planted.write_text("\n".join(FAULTS.values()), "utf-8")
    check = ("clang-tidy", "--quiet", f"--config-file={ROOT / '.clang-tidy'}", str(planted), "--", "-std=c++20")
    said = str(session.run(*check, silent=True, success_codes=[1]))
    missed = [name for name in FAULTS if name not in said]
    if missed:
        session.error(f"clang-tidy did not report what was planted for {', '.join(missed)}")
    with stopwatch.step(session.name, "clang-tidy"):
        session.run("run-clang-tidy.py", "-quiet", "-p", str(build), "-j", str(usable_cores()), "/csrc/")


class Emulator(NamedTuple):
    """A program that runs programs of another system, and the packages of Debian and Ubuntu that contain it."""

    program: str
    packages: str
    root: str = ""  # the folder with the loader and the C library of the target
    oldest: int = 0  # the oldest major version that works


# By target, as zig names it. Wine 8 does not know the reserved ranges (placeholders) that platform_windows_memory.cpp
# needs; Debian 13 and Ubuntu 24.04 have a newer one.
EMULATORS = {
    "x86_64-windows-gnu": Emulator("wine", "wine wine64", oldest=9),
    "aarch64-linux-gnu": Emulator("qemu-aarch64", "qemu-user libc6-arm64-cross", root="/usr/aarch64-linux-gnu"),
}


def command(target: str) -> list[str]:
    """Returns the command that precedes a program for a target; empty if such programs cannot run here."""
    emulator = EMULATORS.get(target)
    program = shutil.which(emulator.program) if emulator else None
    if emulator is None or program is None or not Path(emulator.root or "/").is_dir():
        return []
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"\d+", said)
    if int(version.group() if version else 0) < emulator.oldest:
        return []
    return [program, "-L", emulator.root] if emulator.root else [program]


def missing(targets: Iterable[str]) -> str:
    """Returns a message about what has to be installed to run programs for these targets; empty if nothing."""
    lacking = {target: EMULATORS[target] for target in targets if not command(target)}
    lines = [
        f"  {target} needs {item.program}" + (f" {item.oldest}.0 or later" if item.oldest else f" and {item.root}")
        for target, item in lacking.items()
    ]
    install = (
        f"apt-get update && apt-get install --no-install-recommends {' '.join(i.packages for i in lacking.values())}"
    )
    problem = ["programs for another system cannot run here:", *lines, "On Debian and Ubuntu:", f"  {install}"]
    return "\n".join(problem) if lacking else ""
