# SPDX-License-Identifier: BSD-3-Clause
"""Cross-compiles the native packages for macOS on arm64 with zig, against the libraries of torch's wheel.

The results are only checked, and not distributed, because zig links its C++ library statically into each file, and
macOS has a shared one.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

import nox

from tools import torch_release
from tools.packages import BUILD_TOOLS, Package, closure, refuse
from tools.sessions.lock import lock
from tools.sessions.stopwatch import Stopwatch
from tools.systems.native_driver import ZIG, configure_cross, zig_environment

TARGET = "aarch64-macos"
PLATFORM = "macosx_14_0_arm64"  # of torch's wheels
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# The parts of the wheel that a build uses.
NEEDED = ("torch/include/", "torch/lib/", "torch/version.py", "torch/__init__.py")


def build_for_macos(session: nox.Session, packages: Mapping[str, Package], stopwatch: Stopwatch) -> None:
    """Builds and checks the packages that the session's arguments name, or all that have C++.

    Each is built after the packages that it needs.
    """
    native = [name for name, package in packages.items() if (package.folder / "CMakeLists.txt").exists()]
    unknown = set(session.posargs) - set(native)
    if unknown:
        refuse(f"macos: no C++ in {', '.join(sorted(unknown))}; choose of {', '.join(native)}")
    needed = {item for name in session.posargs or native for item in closure(name, packages)}
    place = session.cache_dir.resolve() / "macos"
    lock(session.cache_dir)
    with stopwatch.step(session.name, "install"):
        session.install(*BUILD_TOOLS, ZIG, "lief>=0.17", "tomli")
    with stopwatch.step(session.name, "torch for macOS"):
        unpack_torch(session, place)
    for name in (item for item in native if item in needed):
        with stopwatch.step(session.name, name):
            build_package(session, packages[name], place)
    session.run("python", "-m", "tools.systems.check_macos", str(site_packages(place)))


def site_packages(place: Path) -> Path:
    """Returns the folder that contains torch and the packages, as an environment on macOS does."""
    return place / f"python{PYTHON}" / "site-packages"


def unpack_torch(session: nox.Session, place: Path) -> None:
    """Downloads torch's wheel for macOS, and unpacks its headers and libraries, once for each version."""
    download = ("--only-binary=:all:", "--no-deps", "--platform", PLATFORM, "--python-version", PYTHON)
    release = f"torch=={torch_release.current()}.*"
    session.run("python", "-m", "pip", "download", *download, "--dest", str(place / "download"), release)
    wheel = max((place / "download").glob("torch-*.whl"), key=lambda path: path.stat().st_mtime)
    folder, marker = site_packages(place), place / f"python{PYTHON}" / "torch.txt"
    if marker.exists() and marker.read_text("utf-8") == wheel.name:
        return
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(NEEDED)])
    marker.write_text(wheel.name, encoding="utf-8")


def build_package(session: nox.Session, package: Package, place: Path) -> None:
    """Compiles and links a package, and installs it where later builds find it."""
    build = place / f"python{PYTHON}" / package.name
    prefix = site_packages(place) / package.import_name
    # CMake finds the torch of the target there; nothing of it is imported.
    env = {**zig_environment(session), "PYTHONPATH": str(site_packages(place))}
    session.run("cmake", "-S", str(package.folder), "-B", str(build), *configure(place), env=env)
    session.run("cmake", "--build", str(build), env=env)
    shutil.rmtree(prefix, ignore_errors=True)
    session.run("cmake", "--install", str(build), "--prefix", str(prefix), env=env)


def configure(place: Path) -> list[str]:
    """Returns the arguments of CMake.

    Python's headers and the names of extension modules are those of this machine. The headers differ from those of
    macOS only in parts that no package uses.
    """
    return [
        *configure_cross(TARGET),
        "-DPython_EXECUTABLE=" + sys.executable,
        f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')}",
        f"-DCMAKE_PREFIX_PATH={site_packages(place) / 'openreg_runtime'}",
        "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",  # nothing here rewrites it later
    ]
