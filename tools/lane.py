# SPDX-License-Identifier: BSD-3-Clause
"""One package in a clean environment: install its wheel, run its tests, run its example."""

from __future__ import annotations

import csv
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nox

from tools._platform import SITE_PACKAGES
from tools.packages import ROOT, Package
from tools.wheelhouse import Wheelhouse

# The arguments of an interpreter that runs tests from any directory.
PYTEST = ("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider")


class Lane:
    """The environment of one session, holding one package and what it declares."""

    def __init__(self, session: nox.Session, wheelhouse: Wheelhouse) -> None:
        self._session = session
        self._wheelhouse = wheelhouse
        self._package: Package | None = None

    def install(self, name: str, *others: str, extra: str = "") -> None:
        """The wheel of `name`, what it declares, and `others` from the package index.

        The environment may have served before: whatever openreg distribution it holds is removed
        first, unless it is exactly the set of wheels wanted now.
        """
        session = self._session
        self._package = self._wheelhouse.packages[name]
        wheels = self._wheelhouse.provide(session, [name])
        with self._wheelhouse.stopwatch.step(session.name, f"install {name}"):
            if not self._holds(wheels):
                present = [item.name.split("-")[0] for item in self._installed()]
                if present:
                    session.run("python", "-m", "pip", "uninstall", "--yes", *present)
            session.install(
                *("--find-links", str(self._wheelhouse.dist)),
                *("--constraint", str(self._wheelhouse.constraints(session))),
                f"{name}[{extra}]" if extra else name,
                *others,
            )
            if not self._holds(wheels):
                session.error(
                    f"pip installed other openreg distributions than the wheels in "
                    f"{self._wheelhouse.dist}: {[item.name for item in self._installed()]}"
                )

    def run(self, step: str, *command: str, settings: Mapping[str, str] | None = None) -> None:
        """Runs a command from an empty directory, with these environment variables and none meant for others."""
        env = lane_variables([self._package.name] if self._package is not None else [])
        env.update(settings or {})
        with self._wheelhouse.stopwatch.step(self._session.name, step), empty_directory(self._session):
            self._session.run(*command, env=env)

    def test(self) -> None:
        """The package's own tests. Further arguments of the nox command go to pytest."""
        assert self._package is not None, "install() comes first"
        self.run("pytest", "python", *PYTEST, str(self._package.folder / "tests"), *self._session.posargs)

    def example(self) -> None:
        """The examples of the package: examples/<package>.py and examples/<package>-<topic>.py."""
        assert self._package is not None, "install() comes first"
        for path in example_scripts(self._package.name):
            self.run(path.name, "python", str(path))

    def _installed(self) -> list[Path]:
        return installed_distributions(Path(self._session.virtualenv.location))

    def _holds(self, wheels: Mapping[str, Path]) -> bool:
        return holds(Path(self._session.virtualenv.location), wheels)


def installed_distributions(environment: Path) -> list[Path]:
    """The metadata folders of the openreg distributions in an environment."""
    return sorted(environment.glob(f"{SITE_PACKAGES}/openreg*.dist-info"))


def holds(environment: Path, wheels: Mapping[str, Path]) -> bool:
    """Whether the openreg distributions of an environment are those wheels, file by file, and no other."""
    installed = {item.name.split("-")[0].replace("_", "-"): item for item in installed_distributions(environment)}
    if set(installed) != set(wheels):
        return False
    return all(
        wheel_record(wheels[name]) <= set(read_record((item / "RECORD").read_text("utf-8")))
        for name, item in installed.items()
    )


def lane_variables(requested: Iterable[str]) -> dict[str, str | None]:
    """Changes to the environment variables for tests in an environment that was asked to hold these packages.

    Removes what is meant for other processes, and tells tests/test_isolation.py what to expect.
    """
    env: dict[str, str | None] = {
        name: None for name in os.environ if name.startswith(("OPENREG_", "TORCH_")) or name == "PYTHONPATH"
    }
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    lane = " ".join(requested)
    if lane:
        env["OPENREG_TEST_LANE"] = lane
    return env


def example_scripts(name: str) -> list[Path]:
    """The examples of a package: examples/<package>.py and examples/<package>-<topic>.py."""
    folder = ROOT / "examples"
    return [path for path in sorted([folder / f"{name}.py", *folder.glob(f"{name}-*.py")]) if path.exists()]


def read_record(text: str) -> Iterator[tuple[str, str]]:
    """File name and digest of every hashed line of a RECORD file."""
    for row in csv.reader(text.splitlines()):
        if row and row[1]:
            yield row[0], row[1]


def wheel_record(wheel: Path) -> set[tuple[str, str]]:
    """What a wheel says it contains."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [item for item in archive.namelist() if item.endswith(".dist-info/RECORD")]
        return set(read_record(archive.read(name).decode()))


@contextmanager
def empty_directory(session: nox.Session) -> Iterator[None]:
    """Works in a directory of its own, so that nothing is imported from the source tree."""
    # Windows keeps a file in use undeletable for a moment after its process ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, session.chdir(folder):
        yield
