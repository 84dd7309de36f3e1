# SPDX-License-Identifier: BSD-3-Clause
"""Checks the table of the hooks that PyTorch calls on a backend, and what packages and tests state about them.

The file TABLE of the doctor lists the hooks, with the files of this repository that implement them. The doctor.toml of
a package lists those that the package implements. The README of openreg-doctor describes both formats, and the doctor's
own code reads them here. A test with the mark `covers("group.hook")` fails without the hook.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.packages import ROOT, Package, discover, read_toml

sys.path.insert(0, str(ROOT / "packages/openreg-doctor/src"))  # tools run where no package is installed

from openreg_doctor import backend, table

TABLE = Path("packages/openreg-doctor/src/openreg_doctor", table.FILE)
DECLARATION = backend.FILE
MARK = "pytest.mark.covers"
# The beginnings of all statuses, which state why there is nothing to implement.
STATUSES = ("not applicable: ", "inherited: ")

# The tests that cover a hook, as "path::function", by the hook: "group.hook".
CoveringTests = Mapping[str, list[str]]


@dataclass(frozen=True)
class Declaration:
    """The doctor.toml of a package."""

    package: Package
    place: Path  # of the file, relative to the root
    content: backend.Package


def declarations(root: Path = ROOT) -> list[Declaration]:
    """Returns the declarations of all packages, first of the one that initializes the device.

    Raises DeclarationError for an invalid one.
    """
    found = []
    for package in discover(root).values():
        place = Path("packages") / package.folder.name / "src" / package.import_name / DECLARATION
        if (root / place).is_file():
            content = backend.parse(package.name, package.import_name, read_toml(root / place))
            found.append(Declaration(package, place, content))
    return sorted(found, key=lambda item: not item.content.backend_table)


def load(root: Path = ROOT) -> list[table.HookGroup]:
    """Returns the groups of the table in their order, each with the rows that packages add at its end."""
    return table.parse(read_toml(root / TABLE), packages=[item.content for item in declarations(root)])


def covering_tests(root: Path = ROOT) -> CoveringTests:
    """Returns the tests of the packages that have the mark `covers`."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.glob("packages/*/tests/**/test_*.py")):
        text = path.read_text("utf-8")
        for function in ast.parse(text).body if MARK in text else ():
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                for hook in _covered(function):
                    found.setdefault(hook, []).append(f"{path.relative_to(root).as_posix()}::{function.name}")
    return found


def _covered(function: ast.FunctionDef) -> Iterator[str]:
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == MARK:
            yield from map(ast.literal_eval, mark.args)


def hooks_of(row: table.HookRow) -> list[str]:
    """Returns what a mark of a test may name: the row, or one of its hooks."""
    return [row.key, *(f"{row.group}.{name}" for name in row.names)]


def tests_of(row: table.HookRow, tests: CoveringTests) -> list[str]:
    """Returns the tests that cover a hook of the row."""
    return list(dict.fromkeys(test for hook in hooks_of(row) for test in tests.get(hook, ())))


def problems(root: Path = ROOT) -> list[str]:
    """Returns one line for each error in the declarations, and for each row without implementation or test."""
    declared, tests = declarations(root), covering_tests(root)
    device = backend.DeclaredBackend("openreg", tuple(item.content for item in declared))
    rows = [row for group in load(root) for row in group.rows]
    found = [problem for row in rows for problem in problems_of(root, row, device, tests_of(row, tests))]
    known = {row.key for row in rows} | {f"{row.group}.*" for row in rows}
    for item in declared:
        name = item.package.import_name
        if item.package.entry_points.get(backend.GROUP) != {name: name}:
            wanted = f'[project.entry-points."{backend.GROUP}"] {name} = "{name}"'
            found.append(f"{item.package.name}: {DECLARATION} is not announced; pyproject.toml needs {wanted}")
        for key in item.content.implements:
            if key not in known:
                found.append(f"{item.place.as_posix()}: no hook {key} is known; correct the name")
    hooks = {hook for row in rows for hook in hooks_of(row)}
    found += [f"{test} covers {hook}, which is no hook" for hook in tests if hook not in hooks for test in tests[hook]]
    return found


def problems_of(root: Path, row: table.HookRow, device: backend.DeclaredBackend, tests: list[str]) -> Iterator[str]:
    """Yields one line for each error of a row. ``tests`` are those that cover it."""
    if row.status and not row.status.startswith(STATUSES):
        yield f"{row.key}: the status should begin with one of {STATUSES}, got {row.status!r}"
    for path in row.code:
        if not (root / path).is_file():
            yield f"{row.key}: no file {path}"
    if row.status:
        return
    if not tests:
        yield f"{row.key}: implemented, but no test covers it (@{MARK})"
    of_code = sorted({Path(path).parts[1] for path in row.code})
    declared = sorted(package.distribution for package in device.owners(row.key))
    if not row.code:
        yield f"{row.key}: neither code nor a status"
    elif of_code != declared:
        yield f"{row.key}: its code is in {of_code}, and {DECLARATION} declares it in {declared}"


def absent_packages(root: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns the doctor's data about each of these packages, for users who have not installed it.

    Leaves out packages without a declaration.
    """
    declared = {item.package.name: item.content for item in declarations(root)}
    return {
        name: {
            "module": item.module,
            "without": item.without,
            "settings": [setting.name for setting in item.settings],
            "hooks": list(item.implements),
        }
        for name in names
        if (item := declared.get(name)) is not None
    }
