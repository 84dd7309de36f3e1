# SPDX-License-Identifier: BSD-3-Clause
"""Makes a release without uploading it: builds all files, checks them, installs them by name and runs the examples.

Fills dist/release/ with the sdists and wheels of all packages, and puts the bill of materials beside that folder.
Nothing is uploaded.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import nox

from tools.packages import ROOT, Package, refuse
from tools.sessions.copies import copy_repository
from tools.sessions.environments import Environment, holds, python_of, record_of, session_variables
from tools.sessions.package_session import NOX, example_scripts
from tools.sessions.wheel_quality import CHECKERS, check, new_folder
from tools.sessions.wheelhouse import Wheelhouse, stem, wheel_of

PROGRAMS = ("build>=1.2", "cyclonedx-bom>=7", NOX, "scikit-build-core>=0.11")
# The files that a build from sdists needs from the repository.
TO_BUILD = ("noxfile.py", "tools")


def number_of(packages: Mapping[str, Package]) -> str:
    """Returns the number of the release, the last part of every package's version. Ends the command if they differ."""
    versions = ", ".join(f"{package.name} {package.version}" for package in packages.values())
    numbers = {package.version.rpartition(".")[2] for package in packages.values()}
    if len(numbers) != 1:
        refuse(f"a release has one number, the last part of every version, and here are several: {versions}")
    return numbers.pop()


def check_tag(tag: str, packages: Mapping[str, Package]) -> None:
    """Ends the command unless the tag fits the versions: v4 fits 2.13.4, and also 2.14.4 and 2.15.4."""
    wanted = f"v{number_of(packages)}"
    if tag != wanted:
        refuse(
            f"the tag {tag} does not fit the versions of the packages, whose tag is {wanted}: "
            f"write the number into each version in packages/*/pyproject.toml, or tag {wanted}"
        )


def run_release(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Makes all files of a release, and uses them like a user who knows only the names of the packages."""
    packages, stopwatch = wheelhouse.packages, wheelhouse.stopwatch
    check_tag(session.posargs[0] if session.posargs else f"v{number_of(packages)}", packages)
    with stopwatch.step(session.name, "install"):
        session.install(*PROGRAMS, *CHECKERS)
    built = wheelhouse.provide(session, list(packages))
    folder = new_folder(wheelhouse.dist / "release")
    place = wheelhouse.cache(session) / "release"
    with stopwatch.step(session.name, "sdists"):
        make_sdists(session, packages, place / "checkout", folder)
        session.run("twine", "check", "--strict", *map(str, sorted(folder.iterdir())))
    with stopwatch.step(session.name, "check"):
        check(session, packages, built, folder)
    with stopwatch.step(session.name, "build from sdists"):
        rebuilt = build_from_sdists(session, packages, folder, place / "from-sdists")
    for name, wheel in built.items():
        found = differences(wheel, rebuilt[name])
        if found:
            session.error(f"{wheel.name} is another one when it is built from its sdist: {', '.join(found)}")
    environment = install_by_name(session, wheelhouse, folder, place / "environment")
    write_bill(session, packages, environment, wheelhouse.dist)
    with stopwatch.step(session.name, "install for examples"):
        pip_install(session, environment, folder, "numpy", "rich", "scikit-learn")
    for name in packages:
        for path in example_scripts(name):
            environment.run(path.name, str(path))
    environment.run("quickstart.py", str(ROOT / "examples" / "quickstart.py"))
    for path in sorted(folder.iterdir()):
        session.log(f"dist/{folder.name}/{path.name}")


def make_sdists(session: nox.Session, packages: Mapping[str, Package], checkout: Path, folder: Path) -> None:
    """Makes the sdist of every package from a copy of the checkout, so that none contains files that git ignores."""
    copy_repository(checkout)
    for name in packages:
        command = ("python", "-m", "build", "--sdist", "--no-isolation", "--skip-dependency-check")
        session.run(*command, "--outdir", str(folder), str(checkout / "packages" / name), silent=True)


def build_from_sdists(
    session: nox.Session, packages: Mapping[str, Package], folder: Path, copy: Path
) -> dict[str, Path]:
    """Builds the wheels in a repository whose packages are the contents of the sdists. Returns them by package."""
    new_folder(copy)
    (copy / "packages").mkdir()
    for part in TO_BUILD:
        origin = ROOT / part
        (shutil.copytree if origin.is_dir() else shutil.copy2)(origin, copy / part)
    for name, package in packages.items():
        with tarfile.open(folder / f"{stem(name)}-{package.version}.tar.gz") as archive:
            archive.extractall(copy / "unpacked", filter="data")
        (copy / "unpacked" / f"{stem(name)}-{package.version}").rename(copy / "packages" / name)
    with session.chdir(copy):
        session.run("python", "-m", "nox", "-s", "wheels", env=session_variables([]))
    return {name: wheel_of(name, copy / "dist") for name in packages}


def differences(one: Path, other: Path) -> list[str]:
    """Returns the files that only one of two wheels has, or that differ."""
    return sorted({file for file, _ in record_of(one) ^ record_of(other)})


def pip_install(session: nox.Session, environment: Environment, folder: Path, *arguments: str) -> None:
    """Installs requirements into an environment, from the folder and from the usual package index."""
    pip = ("python", "-m", "pip", "--python", str(python_of(environment.folder)), "install")
    session.run(*pip, "--find-links", str(folder), *arguments)


def install_by_name(session: nox.Session, wheelhouse: Wheelhouse, folder: Path, place: Path) -> Environment:
    """Returns an environment that contains what pip installs for the names of all packages, and nothing else.

    It is not in the session's own temporary folder, because the examples would create their files there, to which the
    repository's settings of pytest apply.
    """
    names = list(wheelhouse.packages)
    environment = Environment(session, wheelhouse.stopwatch, place, session.name, names)
    with wheelhouse.stopwatch.step(session.name, "install by name"):
        session.run("python", "-m", "venv", "--clear", "--without-pip", str(place))
        release = wheelhouse.packages["openreg-meta"].torch
        pip_install(session, environment, folder, *names, f"torch=={release}.*")
    if not holds(place, {name: wheel_of(name, folder) for name in names}):
        session.error(f"pip did not take the wheels of all packages from {folder}")
    return environment


def write_bill(session: nox.Session, packages: Mapping[str, Package], environment: Environment, dist: Path) -> None:
    """Writes the bill of materials of an installation of all packages, as a CycloneDX document in dist/."""
    meta = packages["openreg-meta"]
    bill = dist / f"openreg-{meta.version}.cdx.json"
    command = ("cyclonedx-py", "environment", "--pyproject", str(meta.folder / "pyproject.toml"))
    kind = ("--mc-type", "library", "--output-reproducible", "--output-file", str(bill))
    session.run(*command, *kind, str(python_of(environment.folder)), env=session_variables([]))
