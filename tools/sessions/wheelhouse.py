# SPDX-License-Identifier: BSD-3-Clause
"""Builds each package's wheel once, in dependency order, into dist/.

All wheels are built in one environment, without build isolation, because an isolated build would download a torch of
its own and compile against that. A wheel is reused as long as its key is the same. The key is a hash of the package's
sources, those of the packages that it depends on, the versions of torch and Python, and the settings of the compiler.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nox
from nox.command import CommandFailed

from tools._platform import IS_WINDOWS, PYTHON_PROGRAM, SCRIPTS_FOLDER, SITE_PACKAGES, usable_cores
from tools.packages import BUILD_TOOLS, LEFT_BEHIND, ROOT, Package, closure, read_toml, requirement_name, siblings
from tools.sessions.lock import lock
from tools.sessions.machine import lacks_compiler, lacks_room
from tools.sessions.stopwatch import Stopwatch

# Names of files and folders that do not end up in a wheel.
NOT_SOURCES = {"tests", "dist", "CHANGELOG.md", *LEFT_BEHIND}
COMPILER_VARIABLES = (
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "MACOSX_DEPLOYMENT_TARGET"),
    *("CMAKE_ARGS", "CMAKE_GENERATOR", "CMAKE_BUILD_TYPE", "SKBUILD_CMAKE_ARGS"),
)
UV = "uv>=0.8"  # fills the environments of sessions (tools/sessions/environments.py)
PYTHON_TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"


def sources_digest(folder: Path) -> str:
    """Returns a hash of names and contents of the files of a package that determine its wheel."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in parts)
        if path.is_file() and not hidden and not NOT_SOURCES.intersection(parts):
            add_file(digest, path, folder)
    for outside in included_folders(folder):
        for path in sorted(outside.rglob("*")):
            if path.is_file() and not LEFT_BEHIND.intersection(path.relative_to(outside).parts):
                add_file(digest, path, outside)
    return digest.hexdigest()


def add_file(digest: hashlib._Hash, path: Path, folder: Path) -> None:
    """Adds the name of a file, relative to a folder, and its content to a hash."""
    content = path.read_bytes()
    digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
    digest.update(content)


def included_folders(folder: Path) -> list[Path]:
    """Returns the folders outside of a package that its wheel contains, too."""
    settings = read_toml(folder / "pyproject.toml").get("tool", {}).get("scikit-build", {})
    return [folder / source for source in settings.get("sdist", {}).get("force-include", {})]


def file_digest(path: Path) -> str:
    """Returns the SHA-256 of one file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stem(name: str) -> str:
    """Returns the beginning of the names of a distribution's files."""
    return name.replace("-", "_")


def wheel_of(name: str, folder: Path) -> Path:
    """Returns the wheel of a package in a folder, which contains exactly one."""
    (wheel,) = folder.glob(f"{stem(name)}-*.whl")
    return wheel


def files_naming(wheel: Path, folders: list[Path]) -> list[str]:
    """Returns the files in a wheel that contain the path of one of the folders."""
    paths = {str(form).encode() for folder in folders for form in (folder, folder.resolve())}
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if any(path in archive.read(name) for path in paths)]


def read_json(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file; empty if the file does not exist."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes an object as JSON."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


class Wheelhouse:
    """The folder dist/ with the wheels of all packages, and the environment in which they are built.

    Only one run of nox may use it at a time (tools/sessions/lock.py).
    """

    def __init__(self, root: Path, packages: Mapping[str, Package], stopwatch: Stopwatch) -> None:
        self.dist = root / "dist"
        self.packages = packages
        self.stopwatch = stopwatch

    def cache(self, session: nox.Session) -> Path:
        """Returns the folder of files that are kept between runs, below .nox/ unless nox has another folder."""
        return session.cache_dir.resolve()

    def environment(self, session: nox.Session) -> Path:
        """Returns the folder of the build environment for this Python."""
        return self.cache(session) / f"build-env-{PYTHON_TAG}"

    def python(self, session: nox.Session) -> Path:
        """Returns the build environment's interpreter."""
        return self.environment(session) / SCRIPTS_FOLDER / PYTHON_PROGRAM

    def run_python(self, session: nox.Session, *arguments: str) -> None:
        """Runs the build environment's interpreter, with the environment's programs first on the path."""
        python = self.python(session)
        env = {
            "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
            "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(usable_cores())),
            "PYTHONPATH": None,
        }
        session.run(str(python), *arguments, env=env, external=True)

    def torch_version(self, session: nox.Session) -> str:
        """Returns the version of the torch in the build environment, as its metadata state it.

        `torch.__version__` of a build with CUDA is 2.15.0+cu132, but its wheel on PyPI is 2.15.0, and pip finds no
        other.
        """
        found = [path.name for path in self.environment(session).glob(f"{SITE_PACKAGES}/torch-*.dist-info")]
        if len(found) != 1:
            session.error(f"no torch, or more than one, in the build environment {self.environment(session)}: {found}")
        return found[0].removeprefix("torch-").removesuffix(".dist-info")

    def prepare(self, session: nox.Session) -> str:
        """Updates the build environment, and returns the version of its torch.

        Fails the session without a compiler, or without room on the disk, and beside another run.
        """
        lock(self.cache(session))
        if (problem := lacks_compiler()) is not None:
            session.error(problem)
        wanted = {
            *BUILD_TOOLS,
            UV,
            *(item for package in self.packages.values() for item in package.build_requirements),
        }
        requirements = sorted(item for item in wanted if requirement_name(item) not in self.packages)
        marker = self.environment(session) / "requirements.json"
        if read_json(marker).get("requirements") != requirements:
            if (problem := lacks_room(self.cache(session))) is not None:
                session.error(problem)
            with self.stopwatch.step(session.name, "build environment"):
                self._make_environment(session, requirements)
                write_json(marker, {"requirements": requirements})
        version = self.torch_version(session)
        pin = next(item for item in requirements if requirement_name(item) == "torch")
        prefix = pin.partition("==")[2].rstrip("*")
        if not version.startswith(prefix):
            session.error(f"the build environment has torch {version}, and {pin} is needed")
        return version

    def _make_environment(self, session: nox.Session, requirements: list[str]) -> None:
        location = str(self.environment(session))
        session.run(sys.executable, "-m", "venv", "--clear", location, external=True)
        try:
            self.run_python(session, "-m", "pip", "install", *requirements)
        except CommandFailed:
            session.error(
                f"pip could not fill {location}, and says why. If it found no version of a package, it reached no "
                "index: connect the machine, or name one by PIP_INDEX_URL. The next run makes this environment anew"
            )

    def keys(self, torch: str) -> dict[str, str]:
        """Returns for each package the hash of everything that its wheel depends on."""
        settings = [f"{name}={os.environ.get(name, '')}" for name in COMPILER_VARIABLES]
        common = [torch, PYTHON_TAG, sysconfig.get_platform(), *settings]
        digests = {name: sources_digest(item.folder) for name, item in self.packages.items()}
        parts = {name: [*common, *(digests[item] for item in closure(name, self.packages))] for name in self.packages}
        return {name: hashlib.sha256("\0".join(part).encode()).hexdigest() for name, part in parts.items()}

    def provide(self, session: nox.Session, wanted: list[str]) -> dict[str, Path]:
        """Returns the wheels of `wanted` and of the packages that they need, built if they are not up to date."""
        torch = self.prepare(session)
        self.dist.mkdir(exist_ok=True)
        needed = dict.fromkeys(item for name in wanted for item in closure(name, self.packages))
        keys = self.keys(torch)
        wheels = {name: self._provide_one(session, name, keys[name]) for name in needed}
        if self.torch_version(session) != torch:
            session.error(f"a build replaced torch {torch} by {self.torch_version(session)}")
        return wheels

    def constraints(self, session: nox.Session) -> Path:
        """Returns a constraints file of pip, which pins torch to the version with which the wheels were built."""
        path = self.cache(session) / "constraints.txt"
        text = f"torch=={self.torch_version(session)}\n"
        # The file is written only if it changes, because another session may be reading it.
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        return path

    def build_tree(self, session: nox.Session, name: str) -> Path:
        """Returns the folder in which CMake keeps a package's object files between builds."""
        return self.cache(session) / "build-trees" / f"{name}-{PYTHON_TAG}"

    def install(self, session: nox.Session, package: Package, *, editable: bool) -> None:
        """Installs a package of this repository, without its requirements, so that others can be built against it."""
        pip = ["-m", "pip", "install", "--no-deps", "--no-index", "--force-reinstall"]
        source = wheel_of(package.name, self.dist)
        if editable:
            tree = self.build_tree(session, package.name)
            pip += ["--no-build-isolation", f"--config-settings=build-dir={tree}", "--editable"]
            source = package.folder
        self._marker(session, package.name).unlink(missing_ok=True)
        with unchanged_headers(self.environment(session)):
            self.run_python(session, *pip, str(source))

    def uninstall(self, session: nox.Session, names: list[str]) -> None:
        """Removes packages of this repository from the build environment."""
        for name in names:
            self._marker(session, name).unlink(missing_ok=True)
        self.run_python(session, "-m", "pip", "uninstall", "--yes", *names)

    def _provide_one(self, session: nox.Session, name: str, key: str) -> Path:
        record = self.cache(session) / "wheels.json"
        known = read_json(record)
        entry = known.get(f"{name}-{PYTHON_TAG}", {})
        wheel: Path = self.dist / entry.get("wheel", "none")
        if entry.get("key") == key and wheel.exists() and file_digest(wheel) == entry["sha256"]:
            session.log(f"{name}: {wheel.name} is up to date")
            return wheel
        for needed in siblings(self.packages[name].build_requirements, self.packages):
            entry = known[f"{needed}-{PYTHON_TAG}"]
            with self.stopwatch.step(session.name, f"install {needed} to build {name}"):
                if read_json(self._marker(session, needed)) != entry:
                    self.install(session, self.packages[needed], editable=False)
                    write_json(self._marker(session, needed), entry)
        with self.stopwatch.step(session.name, f"build {name}"):
            wheel = self._build(session, name)
        known[f"{name}-{PYTHON_TAG}"] = {"key": key, "wheel": wheel.name, "sha256": file_digest(wheel)}
        write_json(record, known)
        return wheel

    def _build(self, session: nox.Session, name: str) -> Path:
        for old in self.dist.glob(f"{stem(name)}-*.whl"):
            old.unlink()
        pip = ("-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir")
        options = ("--wheel-dir", str(self.dist), f"--config-settings=build-dir={self.build_tree(session, name)}")
        self.run_python(session, *pip, *options, str(self.packages[name].folder))
        wheel = wheel_of(name, self.dist)
        # MSVC has no documented option that shortens __FILE__.
        named = [] if IS_WINDOWS else files_naming(wheel, [ROOT, self.environment(session)])
        if named:
            session.error(f"{wheel.name} names folders of this machine: {', '.join(named)}")
        return wheel

    def _marker(self, session: nox.Session, name: str) -> Path:
        """Returns the file that records which wheel of a package the build environment holds; it is absent if none."""
        return self.environment(session) / f"{name}.json"


@contextmanager
def unchanged_headers(environment: Path) -> Iterator[None]:
    """A context in which a reinstall keeps the modification times of equal files below openreg_runtime/include.

    pip writes every file again. Without this context, ninja would compile everything that includes them.
    """
    headers = environment.glob(f"{SITE_PACKAGES}/openreg_runtime/include/**/*.h")
    before = {path: (path.read_bytes(), path.stat()) for path in headers}
    yield
    for path, (content, stat) in before.items():
        if path.exists() and path.read_bytes() == content:
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
