# SPDX-License-Identifier: BSD-3-Clause
"""The packages of this repository, read from the folders under packages/."""

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

# scikit-build-core requires these only where the machine has none, and only in isolated builds.
BUILD_TOOLS = ("cmake>=3.24", "ninja>=1.11")


@dataclass(frozen=True)
class Package:
    """One folder under packages/ and what its pyproject.toml declares."""

    name: str
    folder: Path
    version: str
    requirements: tuple[str, ...]
    build_requirements: tuple[str, ...]
    entry_points: Mapping[str, Mapping[str, str]]
    extras: Mapping[str, tuple[str, ...]]
    is_extra: bool = False  # of openreg-meta

    @property
    def short_name(self) -> str:
        """`ops` for `openreg-ops`."""
        return self.name.removeprefix("openreg-")

    @property
    def torch(self) -> str:
        """The release of PyTorch that the package is for, `2.13` of the version 2.13.0."""
        return self.version.rpartition(".")[0]

    @property
    def import_name(self) -> str:
        """`openreg_x` for `openreg-x`; the meta package takes the name existing code imports."""
        return "torch_openreg" if self.name == "openreg-meta" else self.name.replace("-", "_")


def requirement_name(requirement: str) -> str:
    """The normalized distribution name at the front of a requirement."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    if match is None:
        raise ValueError(f"{requirement!r} does not begin with a distribution name")
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def read_requirements(path: Path) -> list[str]:
    """The requirements in a file of pip's, one a line; lines of comments are left out."""
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    with path.open("rb") as stream:
        tables: dict[str, Any] = tomllib.load(stream)
    return tables


def read_package(folder: Path) -> Package:
    """The package whose pyproject.toml lies in `folder`."""
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
    """Those names among `requirements` that are packages of this repository."""
    names = map(requirement_name, requirements)
    return [name for name in names if name in packages]


def closure(name: str, packages: Mapping[str, Package], above: tuple[str, ...] = ()) -> list[str]:
    """`name` and every package of the repository it needs, each after the ones it depends on."""
    if name in above:
        raise ValueError(f"packages depend on each other in a circle: {[*above, name]}")
    needed = siblings(packages[name].requirements + packages[name].build_requirements, packages)
    below = dict.fromkeys(item for other in needed for item in closure(other, packages, (*above, name)))
    return [*below, name]


def discover(root: Path = ROOT) -> dict[str, Package]:
    """Every package, each after the ones it depends on."""
    found = [read_package(path.parent) for path in sorted(root.glob("packages/*/pyproject.toml"))]
    by_name = {package.name: package for package in found}
    return {name: by_name[name] for start in by_name for name in closure(start, by_name)}


def git(root: Path, *arguments: str) -> str:
    """The output of a git command. Raises ValueError with what git says where it fails."""
    result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ValueError(result.stderr.strip() or f"git {arguments[0]} failed")
    return result.stdout


def refuse(message: str) -> NoReturn:
    """Ends the command because of its arguments: prints the message, and exits with status 2."""
    print(message, file=sys.stderr)
    raise SystemExit(2)
