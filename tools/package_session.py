# SPDX-License-Identifier: BSD-3-Clause
"""The environment of one session: a package, what it declares, and nothing else of this repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import nox

from tools.environments import empty_directory, fill, holds, installed_distributions, session_variables, uv, with_extra
from tools.packages import ROOT, Package, siblings
from tools.wheelhouse import Wheelhouse

# Of noxfile.py, for sessions that run others, or import what imports nox.
NOX = "nox>=2026.10.20"
# The arguments of an interpreter that runs tests from any directory.
PYTEST = ("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider")


class PackageSession:
    """The environment of one session, holding one package and what it declares."""

    def __init__(self, session: nox.Session, wheelhouse: Wheelhouse) -> None:
        self._session = session
        self._wheelhouse = wheelhouse
        self._package: Package | None = None
        self._requested = ""

    def install(self, name: str, *others: str, extra: str = "") -> None:
        """The wheel of `name`, what it declares, and `others`, further packages of ours or from the package index.

        The environment may have served before: whatever openreg distribution it holds is removed
        first, unless it is exactly the set of wheels wanted now.
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

    def run(self, step: str, *command: str, settings: Mapping[str, str] | None = None) -> None:
        """Runs a command from an empty directory, with these environment variables and none meant for others."""
        env = session_variables([self._requested] if self._requested else [])
        env.update(settings or {})
        with self._wheelhouse.stopwatch.step(self._session.name, step), empty_directory(self._session):
            self._session.run(*command, env=env)

    def test(self) -> None:
        """The package's own tests. Further arguments of the nox command go to pytest."""
        assert self._package is not None, "install() comes first"
        self.run("pytest", "python", *PYTEST, str(self._package.folder / "tests"), *self._session.posargs)


def example_scripts(name: str) -> list[Path]:
    """The examples of a package: examples/<package>.py and examples/<package>-<topic>.py."""
    folder = ROOT / "examples"
    return [path for path in sorted([folder / f"{name}.py", *folder.glob(f"{name}-*.py")]) if path.exists()]
