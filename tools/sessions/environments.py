# SPDX-License-Identifier: BSD-3-Clause
"""Creates virtual environments with wheels of this repository and their requirements, in about a second each.

pip downloads the wheels of other projects, once, so that pip's settings and the constraint on torch apply, which uv
does not read. The files of torch, including its compiled Python files, are linked from the build environment, because
unpacking and compiling them takes a minute of processor time. uv then installs the rest offline, with links to the
files of its cache where possible.
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
from tools.packages import Package, requirement_name
from tools.sessions.linked import link_distribution
from tools.sessions.stopwatch import Stopwatch
from tools.sessions.wheelhouse import PYTHON_TAG, Wheelhouse, read_json, write_json

UV_SETTINGS = {"UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}  # ignores uv's configuration on this machine


def foreign_requirements(packages: Mapping[str, Package], *, extras: bool) -> list[str]:
    """Returns the requirements of the packages, or of their extras, except torch and packages of this repository."""
    wanted = {
        item
        for package in packages.values()
        for items in (package.extras.values() if extras else [package.requirements])
        for item in items
    }
    return sorted(item for item in wanted if requirement_name(item) not in {*packages, "torch"})


def fetch_all(session: nox.Session, wheelhouse: Wheelhouse, *, extras: bool) -> list[Path]:
    """Returns the folders with the downloaded requirements of all packages, and with `extras` also of their extras."""
    kinds = {"packages": False, "extras": True} if extras else {"packages": False}
    return [
        fetch(session, wheelhouse, label, foreign_requirements(wheelhouse.packages, extras=of_extras))
        for label, of_extras in kinds.items()
    ]


def fetch(session: nox.Session, wheelhouse: Wheelhouse, label: str, requirements: Sequence[str]) -> Path:
    """Returns the folder with the wheels of these requirements and all that they need.

    pip downloads them if the requirements have changed. `label` is a part of the folder's name.
    """
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
    """Runs uv of the build environment.

    If `variables` is given, uv gets only these environment variables and its own settings.
    """
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
    """Installs packages of this repository with all their requirements into the environment in the folder `place`.

    Also installs `others`, which are requirements for the package index. Leaves installed versions that fit.
    """
    link_distribution("torch", wheelhouse.environment(session), place)
    sources = [wheelhouse.dist, *fetch_all(session, wheelhouse, extras=any("[" in item for item in wanted))]
    if others:
        sources.append(fetch(session, wheelhouse, session.name, others))
    links = [argument for folder in sources for argument in ("--find-links", str(folder))]
    # Each build changes a wheel of this repository, but not its name, by which uv has an older one in its cache.
    ours = [argument for name in wheelhouse.packages for argument in ("--refresh-package", name)]
    into = ("--no-index", "--only-binary", ":all:", *links, *ours, "--python", str(place))
    uv(session, wheelhouse, "pip", "install", "--quiet", *into, *wanted, *others, variables=variables)


def with_extra(requested: str, extra: str) -> str:
    """Returns a requirement with one more extra: `openreg-meta[x,test]` for `openreg-meta[x]` and `test`."""
    return f"{requested}[{extra}]".replace("][", ",") if extra else requested


def installed_distributions(environment: Path) -> list[Path]:
    """Returns the metadata folders of the openreg distributions in an environment."""
    return sorted(environment.glob(f"{SITE_PACKAGES}/openreg*.dist-info"))


def holds(environment: Path, wheels: Mapping[str, Path]) -> bool:
    """Returns True if the openreg distributions of an environment are exactly those wheels, file by file."""
    installed = {item.name.split("-")[0].replace("_", "-"): item for item in installed_distributions(environment)}
    if set(installed) != set(wheels):
        return False
    return all(
        record_of(wheels[name]) <= read_record((item / "RECORD").read_text("utf-8")) for name, item in installed.items()
    )


def read_record(text: str) -> set[tuple[str, ...]]:
    """Returns file name and hash of each line with a hash in the text of a RECORD file."""
    return {tuple(row[:2]) for row in csv.reader(text.splitlines()) if row and row[1]}


def record_of(wheel: Path) -> set[tuple[str, ...]]:
    """Returns file name and hash of each file in a wheel, from its RECORD file, which is left out."""
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (file for file in archive.namelist() if file.endswith(".dist-info/RECORD"))
        return read_record(archive.read(record).decode())


def python_of(environment: Path) -> Path:
    """Returns the path of an environment's interpreter."""
    return environment / SCRIPTS_FOLDER / PYTHON_PROGRAM


# The variables of Python and pytest that change what a test finds or prints, and those by which pytest knows a CI
# machine, where its summary repeats whole messages.
AMBIENT_VARIABLES = frozenset(
    {"PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONWARNINGS", "PYTEST_ADDOPTS", "CI", "BUILD_NUMBER"}
)
# The settings of openreg, and those of torch and of its parts, such as TORCHINDUCTOR_CACHE_DIR and PYTORCH_ALLOC_CONF.
OF_THE_DEVICE = ("OPENREG_", "TORCH", "PYTORCH_")


def session_variables(requested: Iterable[str]) -> dict[str, str | None]:
    """Returns the changes of the environment variables for tests in an environment into which pip installs `requested`.

    Removes variables that are meant for other processes (value None), and names what was requested for tests/subsets.
    AMBIENT_VARIABLES are removed too, so that all machines run the same: a test whose child process relies on
    unbuffered output passes where PYTHONUNBUFFERED is set, and fails elsewhere.
    """
    own = {name for name in os.environ if name.startswith(OF_THE_DEVICE)}
    env: dict[str, str | None] = dict.fromkeys(sorted(own | (os.environ.keys() & AMBIENT_VARIABLES)))
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    expected = " ".join(requested)
    if expected:
        env["OPENREG_TEST_SESSION"] = expected
    return env


@contextmanager
def empty_directory(session: nox.Session) -> Iterator[None]:
    """A context in an empty temporary directory, so that nothing is imported from the source tree."""
    # On Windows, a file cannot be deleted for a moment after the process that used it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, session.chdir(folder):
        yield


class Environment:
    """A virtual environment, and the packages that were requested for it."""

    def __init__(
        self, session: nox.Session, stopwatch: Stopwatch, folder: Path, label: str, requested: Iterable[str]
    ) -> None:
        self.folder = folder
        self._session = session
        self._stopwatch = stopwatch
        self._label = label
        self._requested = tuple(requested)

    def run(self, step: str, *arguments: str) -> None:
        """Runs the environment's interpreter in an empty directory. Fails the session if the interpreter fails."""
        with self._stopwatch.step(self._label, step), empty_directory(self._session):
            env = session_variables(self._requested)
            self._session.run(str(python_of(self.folder)), *arguments, env=env, external=True)


class Environments:
    """Creates environments from the wheels of `needed` packages, or of all packages if none is named.

    Only one nox process may use it at a time.
    """

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
        """Creates an environment with these packages of the repository, all their requirements, and the extra `extra`.

        A package may be requested with extras of its own, such as `openreg-meta[x]`. If `variables` is given, the
        installation gets only these environment variables and its own settings. Removes the session's earlier
        environment.
        """
        folder = Path(self._session.create_tmp()).resolve() / "environment"
        wanted = [with_extra(name, extra) for name in requested]
        with self.stopwatch.step(label, "install"):
            shutil.rmtree(folder, ignore_errors=True)
            made = ("venv", "--quiet", "--python", sys.executable, str(folder))
            uv(self._session, self._wheelhouse, *made, variables=variables)
            fill(self._session, self._wheelhouse, folder, wanted, variables=variables)
        return Environment(self._session, self.stopwatch, folder, label, wanted)
