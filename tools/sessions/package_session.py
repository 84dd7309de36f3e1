# SPDX-License-Identifier: BSD-3-Clause
"""Fills the environment of a nox session with one package and its requirements, and runs its tests there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import nox

from tools.packages import ROOT, Package, siblings
from tools.sessions.environments import (
    empty_directory,
    fill,
    holds,
    installed_distributions,
    session_variables,
    uv,
    with_extra,
)
from tools.sessions.wheelhouse import Wheelhouse

# The version of nox that noxfile.py needs, for sessions that run other sessions or import modules that import nox.
NOX = "nox>=2026.10.20"
# The arguments of an interpreter that runs tests from any directory.
PYTEST = ("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider")


class PackageSession:
    """The environment of one session, which contains one package and its requirements."""

    def __init__(self, session: nox.Session, wheelhouse: Wheelhouse) -> None:
        self._session = session
        self._wheelhouse = wheelhouse
        self._package: Package | None = None
        self._requested = ""

    def install(self, name: str, *others: str, extra: str = "") -> None:
        """Installs the wheel of `name`, its requirements, and `others`: packages of this repository or of the index.

        The environment may be left from an earlier run. Its openreg distributions are removed first, unless they are
        exactly the wanted wheels.
        """
        session = self._session
        self._package = self._wheelhouse.packages[name]
        self._requested = with_extra(name, extra)
        packages = self._wheelhouse.packages
        ours = [other for other in others if other in packages]
        needed = [name, *siblings(self._package.extras.get(extra, ()), packages), *ours]
        wheels, place = self._wheelhouse.provide(session, needed), Path(session.virtualenv.location)
        foreign = [other for other in others if other not in packages]
        with self._wheelhouse.stopwatch.step(session.name, f"install {name}"):
            present = [item.name.split("-")[0] for item in installed_distributions(place)]
            if present and not holds(place, wheels):
                uv(session, self._wheelhouse, "pip", "uninstall", "--quiet", "--python", str(place), *present)
            fill(session, self._wheelhouse, place, [self._requested, *ours], foreign)
            if not holds(place, wheels):
                found = [item.name for item in installed_distributions(place)]
                session.error(f"others than the wheels in {self._wheelhouse.dist} were installed: {found}")

    def run(
        self, step: str, *command: str, settings: Mapping[str, str] | None = None, success_codes: Sequence[int] = (0,)
    ) -> None:
        """Runs a command in an empty directory, with these environment variables, without those for other processes."""
        env = session_variables([self._requested] if self._requested else [])
        env.update(settings or {})
        with self._wheelhouse.stopwatch.step(self._session.name, step), empty_directory(self._session):
            self._session.run(*command, env=env, success_codes=success_codes)

    def test(self) -> None:
        """Runs the package's own tests. Further arguments of the nox command go to pytest."""
        assert self._package is not None, "install() comes first"
        self.run("pytest", "python", *PYTEST, *tests_of(self._package), *self._session.posargs)


def tests_of(package: Package) -> tuple[str, str]:
    """Returns the paths of a package's own tests, and of the tests that every package has."""
    return str(package.folder / "tests"), str(ROOT / "packages" / "test_installed.py")


def example_scripts(name: str) -> list[Path]:
    """Returns the examples of a package: examples/<package>.py and examples/<package>-<topic>.py."""
    folder = ROOT / "examples"
    return [path for path in sorted([folder / f"{name}.py", *folder.glob(f"{name}-*.py")]) if path.exists()]
