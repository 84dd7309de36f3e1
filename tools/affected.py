# SPDX-License-Identifier: BSD-3-Clause
"""Which sessions of nox a change touches, dependants of the changed packages included.

A session says which package it runs with and which further files it reads; what a package needs follows from its
metadata. Documents concern lint and the sessions that name them, and a file that nobody is known to read concerns
everybody.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from tools.packages import Package, closure, siblings
from tools.wheelhouse import NOT_SOURCES

LINT = "lint"
LANE = "test-"
# Folders whose files are read by the sessions that say so, and by lint.
READ_BY_SOME = {"benchmarks", "examples", "templates", "tests"}


@dataclass(frozen=True)
class Session:
    """One session: it uses a package with all that this needs, and files that match the patterns of fnmatch.

    Its budget is in seconds, without the wheels (tools/budgets.py).
    """

    name: str
    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    budget: int = 0


def lane_session(package: Package) -> Session:
    """The lane of a package."""
    place = f"packages/{package.name}"
    examples = (f"examples/{package.name}.py", f"examples/{package.name}-*.py")
    files = (f"{place}/tests/*", f"{place}/docs/*", *examples)
    return Session(f"{LANE}{package.name}", (package.name,), files, package.budget.get("lane", 0))


def installed(session: Session, packages: Mapping[str, Package]) -> set[str]:
    """The packages that a session installs: its own with all that they need, and in a lane what its tests ask for."""
    wanted = list(session.packages)
    if session.name.startswith(LANE):
        wanted += [
            item for name in session.packages for item in siblings(packages[name].extras.get("test", ()), packages)
        ]
    return {name for item in wanted for name in closure(item, packages)}


def touches(file: str, session: Session, packages: Mapping[str, Package]) -> bool:
    """Whether a changed file changes what a session sees."""
    path = PurePosixPath(file)
    first, *inside = path.parts
    if session.name == LINT or any(fnmatchcase(file, pattern) for pattern in session.files):
        return True
    if path.suffix in {".md", ".rst"} or first == "docs" or path.name == "LICENSE":
        return False
    # There is no telling who reads tools and settings, and what is left of a removed package.
    if first != "packages" or len(inside) < 2 or inside[0] not in packages:
        return first not in READ_BY_SOME
    name, *rest = inside
    is_source = not NOT_SOURCES.intersection(rest) and rest[0] != "docs"
    return is_source and name in installed(session, packages)


def affected(files: Iterable[str], sessions: Iterable[Session], packages: Mapping[str, Package]) -> list[str]:
    """The sessions that see at least one of the changed files; lint always."""
    changed = list(files)
    return [
        session.name
        for session in sessions
        if session.name == LINT or any(touches(file, session, packages) for file in changed)
    ]


def git(root: Path, *arguments: str) -> str:
    """The output of a git command. Raises ValueError with what git says where it fails."""
    result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ValueError(result.stderr.strip() or f"git {arguments[0]} failed")
    return result.stdout


def changed_files(root: Path, revision: str) -> list[str]:
    """The files that differ from where the work branched off `revision`, committed or not, both names of a renamed one.

    Raises ValueError for a revision that git does not know or that has no history in common.
    """
    try:
        base = git(root, "merge-base", "--end-of-options", revision, "HEAD").strip()
    except ValueError as error:
        raise ValueError(
            f"{revision!r} and HEAD have no commit in common in {root}. Name a commit of this checkout, or "
            f"fetch it first: git fetch --unshallow origin\n{error}"
        ) from error
    changed = git(root, "diff", "--name-only", "--no-renames", "-z", base)
    new = git(root, "ls-files", "--others", "--exclude-standard", "--full-name", "-z")
    return sorted({name for name in (changed + new).split("\0") if name})


def publish(lists: Mapping[str, list[str]]) -> list[str]:
    """Lines `name=JSON`, which a GitHub workflow reads: also appended to the file that GITHUB_OUTPUT names."""
    lines = [f"{name}={json.dumps(names)}" for name, names in lists.items()]
    output = os.environ.get("GITHUB_OUTPUT")
    if output:
        with Path(output).open("a", encoding="utf-8") as stream:
            stream.writelines(line + "\n" for line in lines)
    return lines
