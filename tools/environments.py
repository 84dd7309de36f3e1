# SPDX-License-Identifier: BSD-3-Clause
"""Environments that hold wheels of ours and what they need, filled in a second each.

pip fetches what comes from others, once, so that its settings and the constraint on torch hold: uv does not read them.
torch is linked from the build environment with its compiled files, which takes a minute of a processor to unpack and
compile. uv then installs the rest offline, with links to the files of its cache where it can.
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import nox

from tools._platform import PYTHON_PROGRAM, SCRIPTS_FOLDER, SITE_PACKAGES
from tools.linked import link_distribution
from tools.packages import Package, requirement_name
from tools.stopwatch import Stopwatch
from tools.wheelhouse import PYTHON_TAG, Wheelhouse, read_json, write_json

UV_SETTINGS = {"UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}  # settings of this machine change nothing


def foreign_requirements(packages: Mapping[str, Package], *, extras: bool) -> list[str]:
    """What the packages, or their extras, need that is neither a package of this repository nor torch."""
    wanted = {
        item
        for package in packages.values()
        for items in (package.extras.values() if extras else [package.requirements])
        for item in items
    }
    return sorted(item for item in wanted if requirement_name(item) not in {*packages, "torch"})


def fetch_all(session: nox.Session, wheelhouse: Wheelhouse, *, extras: bool) -> list[Path]:
    """The folders with what the packages need from others, and with `extras` what their extras need, too."""
    kinds = {"packages": False, "extras": True} if extras else {"packages": False}
    return [
        fetch(session, wheelhouse, label, foreign_requirements(wheelhouse.packages, extras=of_extras))
        for label, of_extras in kinds.items()
    ]


def fetch(session: nox.Session, wheelhouse: Wheelhouse, label: str, requirements: Sequence[str]) -> Path:
    """The folder with the wheels of these requirements and of all that they need; pip fills it where they changed."""
    folder = wheelhouse.cache(session) / f"downloads-{PYTHON_TAG}-{label}"
    wanted = [f"torch=={wheelhouse.torch_version(session)}", *requirements]
    marker = folder / "requirements.json"
    if read_json(marker).get("requirements") != wanted:
        with wheelhouse.stopwatch.step(session.name, "download"):
            shutil.rmtree(folder, ignore_errors=True)
            pip = ("-m", "pip", "wheel", "--quiet", "--wheel-dir", str(folder))
            constraint = ("--constraint", str(wheelhouse.constraints(session)))
            wheelhouse.run_python(session, *pip, *constraint, *requirements)
            write_json(marker, {"requirements": wanted})
    return folder


def uv(
    session: nox.Session, wheelhouse: Wheelhouse, *arguments: str, variables: Mapping[str, str] | None = None
) -> None:
    """Runs uv of the build environment; `variables` are all that it sees besides its own settings."""
    env = {"UV_CACHE_DIR": str(wheelhouse.cache(session) / "uv"), **UV_SETTINGS, **(variables or {})}
    command = (str(wheelhouse.python(session)), "-m", "uv", *arguments)
    session.run(*command, env=env, include_outer_env=variables is None, external=True, silent=True)


def fill(
    session: nox.Session,
    wheelhouse: Wheelhouse,
    place: Path,
    wanted: Sequence[str],
    others: Sequence[str] = (),
    *,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Installs packages of ours, all that they declare, and `others`, requirements for the package index.

    What the environment has already, and fits, is left.
    """
    link_distribution("torch", wheelhouse.environment(session), place)
    sources = [wheelhouse.dist, *fetch_all(session, wheelhouse, extras=any("[" in item for item in wanted))]
    if others:
        sources.append(fetch(session, wheelhouse, session.name, others))
    links = [argument for folder in sources for argument in ("--find-links", str(folder))]
    # A wheel of ours is another one after each build, with the name that uv has in its cache.
    ours = [argument for name in wheelhouse.packages for argument in ("--refresh-package", name)]
    into = ("--no-index", "--only-binary", ":all:", *links, *ours, "--python", str(place))
    uv(session, wheelhouse, "pip", "install", "--quiet", *into, *wanted, *others, variables=variables)


def with_extra(requested: str, extra: str) -> str:
    """A requirement with one more extra: `openreg-meta[x,test]` for `openreg-meta[x]` and `test`."""
    return f"{requested}[{extra}]".replace("][", ",") if extra else requested


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


def read_record(text: str) -> set[tuple[str, ...]]:
    """File name and digest of every hashed line of a RECORD file."""
    return {tuple(row[:2]) for row in csv.reader(text.splitlines()) if row and row[1]}


def record_of(wheel: Path) -> set[tuple[str, ...]]:
    """The same of a wheel: everything in it but that file itself."""
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (file for file in archive.namelist() if file.endswith(".dist-info/RECORD"))
        return read_record(archive.read(record).decode())


def python_of(environment: Path) -> Path:
    """The interpreter of an environment."""
    return environment / SCRIPTS_FOLDER / PYTHON_PROGRAM


def session_variables(requested: Iterable[str]) -> dict[str, str | None]:
    """Returns the changes of the environment variables for tests in an environment into which pip installs `requested`.

    Removes what is meant for other processes, and names the expected packages for tests/test_isolation.py.
    """
    env: dict[str, str | None] = {
        name: None for name in os.environ if name.startswith(("OPENREG_", "TORCH_")) or name == "PYTHONPATH"
    }
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    expected = " ".join(requested)
    if expected:
        env["OPENREG_TEST_LANE"] = expected
    return env


@contextmanager
def empty_directory(session: nox.Session) -> Iterator[None]:
    """Works in a directory of its own, so that nothing is imported from the source tree."""
    # Windows keeps a file in use undeletable for a moment after its process ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, session.chdir(folder):
        yield


class Environment:
    """One environment, and the packages that pip installs into it."""

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
            env = session_variables(self._requested)
            self._session.run(str(python_of(self.folder)), *arguments, env=env, external=True)


class Environments:
    """Makes environments for `needed` packages; all, if none is named. One nox process at a time."""

    def __init__(self, session: nox.Session, wheelhouse: Wheelhouse, needed: Iterable[str] = ()) -> None:
        self._session = session
        self._wheelhouse = wheelhouse
        self.stopwatch = wheelhouse.stopwatch
        self.wheels = wheelhouse.provide(session, list(needed) or list(wheelhouse.packages))

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
        folder = Path(self._session.create_tmp()).resolve() / "environment"
        wanted = [with_extra(name, extra) for name in requested]
        with self.stopwatch.step(label, "install"):
            shutil.rmtree(folder, ignore_errors=True)
            made = ("venv", "--quiet", "--python", sys.executable, str(folder))
            uv(self._session, self._wheelhouse, *made, variables=variables)
            fill(self._session, self._wheelhouse, folder, wanted, variables=variables)
        return Environment(self._session, self.stopwatch, folder, label, wanted)
