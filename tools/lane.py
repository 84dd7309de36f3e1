# SPDX-License-Identifier: BSD-3-Clause
"""Packages in clean environments: that of a session, and many that take a second each.

For these pip fetches what the packages need from others, so that its settings and the constraint on torch hold: uv
does not read them. uv then makes an environment offline, with links to the files of its cache where it can.
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nox

from tools._platform import PYTHON_PROGRAM, SCRIPTS_FOLDER, SITE_PACKAGES
from tools.linked import link_distribution
from tools.packages import ROOT, Package, requirement_name, siblings
from tools.stopwatch import Stopwatch
from tools.wheelhouse import PYTHON_TAG, Wheelhouse, read_json, write_json

# Of noxfile.py, for sessions that run others, or import what imports nox.
NOX = "nox>=2026.10.20"
# The arguments of an interpreter that runs tests from any directory.
PYTEST = ("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider")


class Lane:
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
        with self._wheelhouse.stopwatch.step(session.name, f"install {name}"):
            present = [item.name.split("-")[0] for item in installed_distributions(place)]
            if present and not holds(place, wheels):
                session.run("python", "-m", "pip", "uninstall", "--yes", *present)
            link_distribution("torch", self._wheelhouse.environment(session), place)
            sources = ("--find-links", str(self._wheelhouse.dist))
            constraint = ("--constraint", str(self._wheelhouse.constraints(session)))
            session.install(*sources, *constraint, self._requested, *others)
            if not holds(place, wheels):
                found = [item.name for item in installed_distributions(place)]
                session.error(f"pip installed others than the wheels in {self._wheelhouse.dist}: {found}")

    def run(self, step: str, *command: str, settings: Mapping[str, str] | None = None) -> None:
        """Runs a command from an empty directory, with these environment variables and none meant for others."""
        env = lane_variables([self._requested] if self._requested else [])
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


def installed_distributions(environment: Path) -> list[Path]:
    """The metadata folders of the openreg distributions in an environment."""
    return sorted(environment.glob(f"{SITE_PACKAGES}/openreg*.dist-info"))


def holds(environment: Path, wheels: Mapping[str, Path]) -> bool:
    """Whether the openreg distributions of an environment are those wheels, file by file, and no other."""
    installed = {item.name.split("-")[0].replace("_", "-"): item for item in installed_distributions(environment)}
    if set(installed) != set(wheels):
        return False
    return all(
        record_of(wheels[name]) <= read_record((item / "RECORD").read_text("utf-8")) for name, item in installed.items()
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


def read_record(text: str) -> set[tuple[str, ...]]:
    """File name and digest of every hashed line of a RECORD file."""
    return {tuple(row[:2]) for row in csv.reader(text.splitlines()) if row and row[1]}


def record_of(wheel: Path) -> set[tuple[str, ...]]:
    """The same of a wheel: everything in it but that file itself."""
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (file for file in archive.namelist() if file.endswith(".dist-info/RECORD"))
        return read_record(archive.read(record).decode())


@contextmanager
def empty_directory(session: nox.Session) -> Iterator[None]:
    """Works in a directory of its own, so that nothing is imported from the source tree."""
    # Windows keeps a file in use undeletable for a moment after its process ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, session.chdir(folder):
        yield


UV = "uv>=0.8"


def foreign_requirements(packages: Mapping[str, Package]) -> list[str]:
    """What the packages and their tests need that is no package of this repository."""
    ours = packages.values()
    wanted = {item for package in ours for item in (*package.requirements, *package.extras.get("test", ()))}
    return sorted(item for item in wanted if requirement_name(item) not in packages)


def with_extra(requested: str, extra: str) -> str:
    """A requirement with one more extra: `openreg-meta[x,test]` for `openreg-meta[x]` and `test`."""
    return f"{requested}[{extra}]".replace("][", ",") if extra else requested


class Environment:
    """One environment, and the packages that it was asked to hold."""

    def __init__(
        self, session: nox.Session, stopwatch: Stopwatch, folder: Path, label: str, requested: Iterable[str]
    ) -> None:
        self.folder = folder
        self._session = session
        self._stopwatch = stopwatch
        self._label = label
        self._requested = tuple(requested)

    def run(self, step: str, *arguments: str) -> None:
        """Runs the interpreter from an empty directory; fails the session if that fails."""
        with self._stopwatch.step(self._label, step), empty_directory(self._session):
            env = lane_variables(self._requested)
            self._session.run(str(python_of(self.folder)), *arguments, env=env, external=True)


def python_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / SCRIPTS_FOLDER / PYTHON_PROGRAM


class Environments:
    """Makes environments for `needed` packages; all, if none is named. One nox process at a time."""

    def __init__(self, session: nox.Session, wheelhouse: Wheelhouse, needed: Iterable[str] = ()) -> None:
        self._session = session
        self._wheelhouse = wheelhouse
        self.stopwatch = wheelhouse.stopwatch
        self._cache = wheelhouse.cache(session)
        self._downloads = self._cache / f"downloads-{PYTHON_TAG}"
        self.wheels = wheelhouse.provide(session, list(needed) or list(wheelhouse.packages))
        with self.stopwatch.step(session.name, "download"):
            session.install(UV)
            self._download()

    def create(
        self,
        label: str,
        requested: Iterable[str],
        *,
        extra: str = "test",
        variables: Mapping[str, str] | None = None,
    ) -> Environment:
        """A new environment with these packages of the repository, all they declare, and what `extra` adds to each.

        A package may be requested with extras of its own, as `openreg-meta[x]`.
        `variables` are all that the installation sees besides its own settings. The session's earlier environment is
        removed.
        """
        names = tuple(requested)
        folder = Path(self._session.create_tmp()).resolve() / "environment"
        wanted = [with_extra(name, extra) for name in names]
        with self.stopwatch.step(label, "install"):
            shutil.rmtree(folder, ignore_errors=True)
            self._uv(variables, "venv", "--quiet", "--python", sys.executable, str(folder))
            links = ("--find-links", str(self._wheelhouse.dist), "--find-links", str(self._downloads))
            into = ("--offline", "--no-index", "--only-binary", ":all:", *links, "--python", str(folder))
            self._uv(variables, "pip", "install", "--quiet", *into, *wanted)
        return Environment(self._session, self.stopwatch, folder, label, wanted)

    def _uv(self, variables: Mapping[str, str] | None, *arguments: str) -> None:
        # Its settings of this machine must not change what an environment holds.
        env = {"UV_CACHE_DIR": str(self._cache / "uv"), "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
        env.update(variables or {})
        self._session.run("uv", *arguments, env=env, include_outer_env=variables is None, silent=True)

    def _download(self) -> None:
        """Fills the folder of downloads, unless it holds what is wanted."""
        torch = f"torch=={self._wheelhouse.torch_version(self._session)}"
        requirements = [torch, *foreign_requirements(self._wheelhouse.packages)]
        marker = self._downloads / "requirements.json"
        if read_json(marker).get("requirements") != requirements:
            shutil.rmtree(self._downloads, ignore_errors=True)
            pip = ("-m", "pip", "wheel", "--quiet", "--wheel-dir", str(self._downloads))
            self._wheelhouse.run_python(self._session, *pip, *requirements)
            write_json(marker, {"requirements": requirements})


RUNTIME = "openreg-runtime"
OPS = "openreg-ops"
# Each differs from the one before in one package, and the first is what a build leaves behind.
ORDER = (("regular", "regular"), ("regular", "editable"), ("editable", "editable"), ("editable", "regular"))


def run_combinations(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Installs runtime and ops in each combination and runs check_shared_state.py.

    Works in the build environment, because an editable install is a build and the object files of
    the wheels are there. Leaves the environment with the regular runtime, as a build would.
    """
    packages = wheelhouse.packages
    wheelhouse.provide(session, [OPS])
    script = str(ROOT / "tools" / "check_shared_state.py")
    current: dict[str, str] = {}
    try:
        for forms in ORDER:
            wanted = dict(zip((RUNTIME, OPS), forms, strict=True))
            with wheelhouse.stopwatch.step(session.name, "runtime {}, ops {}".format(*forms)):
                for name, form in wanted.items():
                    if current.get(name) != form:
                        wheelhouse.install(session, packages[name], editable=form == "editable")
                        current[name] = form
                arguments = [f"{packages[name].import_name}={form}" for name, form in wanted.items()]
                wheelhouse.run_python(session, script, *arguments)
    finally:
        wheelhouse.uninstall(session, [OPS])
        wheelhouse.install(session, packages[RUNTIME], editable=False)
