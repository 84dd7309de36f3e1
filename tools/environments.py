# SPDX-License-Identifier: BSD-3-Clause
"""Many clean environments in a short time: downloaded once by pip, installed by uv from there.

pip fetches what the packages need from others, so its settings and the constraint on torch hold. uv then makes an
environment in a second or two, offline, with links to the files of its cache where the file system has them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import nox

from tools._platform import PYTHON_PROGRAM, SCRIPTS_FOLDER
from tools.lane import empty_directory, lane_variables
from tools.packages import Package, requirement_name
from tools.stopwatch import Stopwatch
from tools.wheelhouse import PYTHON_TAG, Wheelhouse, read_json, write_json

UV = "uv>=0.8"


def foreign_requirements(packages: Mapping[str, Package]) -> list[str]:
    """What the packages and their tests need that is no package of this repository."""
    wanted: set[str] = set()
    for package in packages.values():
        wanted.update(package.requirements, package.extras.get("test", ()))
    return sorted(item for item in wanted if requirement_name(item) not in packages)


def with_extra(requested: str, extra: str) -> str:
    """A requirement with one more extra: `openreg-meta[x,test]` for `openreg-meta[x]` and `test`."""
    if not extra:
        return requested
    return f"{requested[:-1]},{extra}]" if requested.endswith("]") else f"{requested}[{extra}]"


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

    def passes(self, step: str, *arguments: str) -> bool:
        """Whether the interpreter, run in the same way, ends with 0; its output is not shown."""
        with self._stopwatch.step(self._label, step), empty_directory(self._session):
            changes = lane_variables(self._requested)
            kept = {name: value for name, value in os.environ.items() if changes.get(name, value) is not None}
            env = {**kept, **{name: value for name, value in changes.items() if value is not None}}
            # nox shows the output of what fails, and here a failure may be what is wanted.
            command = [str(python_of(self.folder)), *arguments]
            return subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0


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
        return Environment(self._session, self.stopwatch, folder, label, names)

    def _uv(self, variables: Mapping[str, str] | None, *arguments: str) -> None:
        # Its settings of this machine must not change what an environment holds.
        env = {"UV_CACHE_DIR": str(self._cache / "uv"), "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
        env.update(variables or {})
        self._session.run("uv", *arguments, env=env, include_outer_env=variables is None, silent=True)

    def _download(self) -> None:
        """Fills the folder of downloads, unless it holds what is wanted."""
        requirements = [
            f"torch=={self._wheelhouse.torch_version(self._session)}",
            *foreign_requirements(self._wheelhouse.packages),
        ]
        marker = self._downloads / "requirements.json"
        if read_json(marker).get("requirements") == requirements:
            return
        shutil.rmtree(self._downloads, ignore_errors=True)
        self._wheelhouse.run_python(
            self._session, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(self._downloads), *requirements
        )
        write_json(marker, {"requirements": requirements})
