# SPDX-License-Identifier: BSD-3-Clause
"""Rules that make packages fit together, in the form of those in repo_checks.py, which runs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools import hooks
from tools.packages import Package, closure, discover
from tools.providers import NAMES, TABLE, planned

RUNTIME = "openreg-runtime"
PLUGINS = "openreg.plugins"
RECORD = "openreg_install_python_modules("
QUESTION = "openreg_runtime.require_matching_build(__name__)"

# Where a file of the runtime counts as a source.
SOURCES = ("src", "csrc", "include", "cmake", "tools", "CMakeLists.txt", "pyproject.toml")
TEXTS = {".py", ".pyi", ".cpp", ".h", ".cmake", ".txt", ".toml", ".json", ".in"}


def native_parts_ask_first(root: Path) -> list[str]:
    """A package with native parts records what they were compiled for, and asks the runtime before it loads them."""
    problems = []
    for package in discover(root).values():
        if package.name == RUNTIME or not (package.folder / "csrc").is_dir():
            continue
        cmake = package.folder / "CMakeLists.txt"
        if not cmake.is_file() or RECORD not in cmake.read_text("utf-8"):
            problems.append(f"{package.folder.relative_to(root)}/CMakeLists.txt: install with {RECORD}...)")
        source = package.folder / "src" / package.import_name / "__init__.py"
        before, asked, _ = source.read_text("utf-8").partition(QUESTION)
        if not asked or re.search(rf"(?m)^\s*(from|import) {package.import_name}\b", before):
            problems.append(f"{source.relative_to(root)}: {QUESTION} has to come before its own imports")
    return problems


def added_names(package: Package) -> Iterator[tuple[str, str]]:
    """Where the sources of a package call `openreg_runtime.extend()`, and the name; none if it is not written out."""
    for path in sorted((package.folder / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"openreg_runtime.extend", "extend"}:
                first = node.args[0] if node.args else None
                name = first.value if isinstance(first, ast.Constant) else ""
                yield f"{path.relative_to(package.folder).as_posix()}:{node.lineno}", str(name)


def added_names_are_declared(root: Path) -> list[str]:
    """A package adds to torch.openreg the names that its pyproject.toml declares, and no other."""
    problems = []
    for package in discover(root).values():
        if package.name == RUNTIME:
            continue
        declared = set(package.entry_points.get(NAMES, ()))
        added = list(added_names(package))
        problems += [f"{package.name}: {place}: write out the name that is added" for place, name in added if not name]
        problems += [
            f"{package.name}: {place}: declare {name!r} in pyproject.toml, in the entry points of {NAMES}"
            for place, name in added
            if name and name not in declared
        ]
        problems += [
            f"{package.name}: pyproject.toml declares {name!r} in {NAMES}, and nothing adds it"
            for name in sorted(declared - {name for _, name in added})
        ]
    return problems


def names_of(package: str) -> str:
    """A pattern for what names a package: to pip, to Python, to C++ and to who includes its headers."""
    short = re.escape(package.removeprefix("openreg-")).replace(r"\-", "[-_]")
    other = "|torch[-_]openreg" if package == "openreg-meta" else ""
    return rf"openreg(?:-|_|::|/){short}{other}"


def runtime_names_no_other_package(root: Path) -> list[str]:
    """The runtime knows no package that builds on it: what they bring stands in one table, written from them."""
    packages = discover(root)
    if RUNTIME not in packages:
        return []
    below = set(closure(RUNTIME, packages))
    others = sorted({*packages, *planned(root).values()} - below)
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(names_of, others))})(?![\w-])")
    folder = packages[RUNTIME].folder
    places = [folder / name for name in SOURCES]
    paths = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*")))]
    problems = []
    for path in paths:
        if path.suffix in TEXTS and path != root / TABLE:
            problems += [
                f"{path.relative_to(root).as_posix()}:{number}: names {match.group()}; what packages bring is in "
                f"{TABLE.name}, which they declare"
                for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
                if (match := pattern.search(line))
            ]
    return problems


def plugins_tell_the_doctor(root: Path) -> list[str]:
    """What adds to a device ships a doctor.toml, so that its absence can be told (`python -m tools.hooks`)."""
    problems = []
    for package in discover(root).values():
        place = package.folder.relative_to(root) / "src" / package.import_name / hooks.DECLARATION
        if PLUGINS in package.entry_points and not (root / place).is_file():
            problems.append(f"{place}: missing; it says what the package brings (templates/package has one)")
    return problems
