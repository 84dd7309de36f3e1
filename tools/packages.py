# SPDX-License-Identifier: BSD-3-Clause
"""Reads the packages of this repository from the folders below packages/."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
DRIVER = Path("packages", "openreg-runtime", "csrc", "driver")  # its own CMake project, openreg_driver

# Builds, Python and macOS leave these behind in a folder of sources.
LEFT_BEHIND = {"build", "__pycache__", ".DS_Store"}
# Required explicitly, because scikit-build-core requires them only in isolated builds, if the machine has none.
BUILD_TOOLS = ("cmake>=3.24", "ninja>=1.11")


@dataclass(frozen=True)
class Package:
    """One folder below packages/, and the content of its pyproject.toml."""

    name: str
    folder: Path
    version: str
    requirements: tuple[str, ...]
    build_requirements: tuple[str, ...]
    entry_points: Mapping[str, Mapping[str, str]]
    extras: Mapping[str, tuple[str, ...]]
    is_extra: bool = False  # True: an extra of openreg-meta installs it

    @property
    def short_name(self) -> str:
        """Returns the name without its prefix: `ops` for `openreg-ops`."""
        return self.name.removeprefix("openreg-")

    @property
    def torch(self) -> str:
        """Returns the release of PyTorch that the package is for: `2.13` for the version 2.13.0."""
        return self.version.rpartition(".")[0]

    @property
    def import_name(self) -> str:
        """Returns the import package: `openreg_x` for `openreg-x`. openreg-meta has the name that programs import."""
        return "torch_openreg" if self.name == "openreg-meta" else self.name.replace("-", "_")


def requirement_name(requirement: str) -> str:
    """Returns the normalized distribution name at the beginning of a requirement. Raises ValueError without one."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    if match is None:
        raise ValueError(f"{requirement!r} does not begin with a distribution name")
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def read_requirements(path: Path) -> list[str]:
    """Returns the requirements in a requirements file of pip, which has one per line. Leaves out comments."""
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the tables of a TOML file."""
    with path.open("rb") as stream:
        tables: dict[str, Any] = tomllib.load(stream)
    return tables


def read_package(folder: Path) -> Package:
    """Returns the package whose pyproject.toml is in `folder`."""
    tables = read_toml(folder / "pyproject.toml")
    project = tables["project"]
    ours = tables.get("tool", {}).get("openreg", {})
    return Package(
        name=project["name"],
        folder=folder,
        version=project["version"],
        requirements=tuple(project.get("dependencies", ())),
        build_requirements=tuple(tables["build-system"]["requires"]),
        entry_points=project.get("entry-points", {}),
        extras={name: tuple(items) for name, items in project.get("optional-dependencies", {}).items()},
        is_extra=ours.get("extra", False),
    )


def siblings(requirements: Iterable[str], packages: Mapping[str, Package]) -> list[str]:
    """Returns the names among `requirements` that are packages of this repository."""
    names = map(requirement_name, requirements)
    return [name for name in names if name in packages]


def closure(name: str, packages: Mapping[str, Package], above: tuple[str, ...] = ()) -> list[str]:
    """Returns `name` and every package of the repository that it needs, each after those that it depends on.

    `above` has the packages that led to `name`. Raises ValueError for a cycle.
    """
    if name in above:
        raise ValueError(f"packages depend on each other in a circle: {[*above, name]}")
    needed = siblings(packages[name].requirements + packages[name].build_requirements, packages)
    below = dict.fromkeys(item for other in needed for item in closure(other, packages, (*above, name)))
    return [*below, name]


def discover(root: Path = ROOT) -> dict[str, Package]:
    """Returns every package by its name, each after those that it depends on."""
    found = [read_package(path.parent) for path in sorted(root.glob("packages/*/pyproject.toml"))]
    by_name = {package.name: package for package in found}
    return {name: by_name[name] for start in by_name for name in closure(start, by_name)}


def git(root: Path, *arguments: str) -> str:
    """Returns the output of a git command. Raises ValueError with git's message if it fails."""
    result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ValueError(result.stderr.strip() or f"git {arguments[0]} failed")
    return result.stdout


def refuse(message: str) -> NoReturn:
    """Ends a command that cannot be carried out: prints the message, and exits with status 2."""
    print(message, file=sys.stderr)
    raise SystemExit(2)
