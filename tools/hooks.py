# SPDX-License-Identifier: BSD-3-Clause
"""Checks the table of the hooks that PyTorch calls on a backend, and generates a page and a JSON file from it.

The file QUESTIONS of the doctor lists the hooks, and the doctor.toml of each package lists its implementations. The
README of openreg-doctor describes both formats. A test with the mark `covers("group.hook")` fails without the hook.
PAGE is for readers. From MODELS the doctor names code that authors of a backend may copy. tools/providers.py writes
both files, and the table of packages that are not installed.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.packages import ROOT, Package, discover, read_toml
from tools.torch_release import SUPPORTED

DOCTOR = Path("packages/openreg-doctor")
QUESTIONS = DOCTOR / "src/openreg_doctor/hooks.toml"
MODELS = DOCTOR / "src/openreg_doctor/models.json"
PAGE = DOCTOR / "docs/hooks.md"
DECLARATION = "doctor.toml"
GROUP = "openreg_doctor.packages"

OLDEST = SUPPORTED[0]
MARK = "pytest.mark.covers"
IMPLEMENTED = "implemented"
# The beginnings of all other statuses, which state why there is nothing to implement.
OTHER_STATUSES = ("not applicable: ", "inherited: ")
WHERE = "the repository of openreg"

HEADING = """\
# Hooks that PyTorch calls

PyTorch finds an accelerator's parts by name: functions of the device's module, virtual functions of C++
interfaces, registrations. This page lists them all, each with the file that implements it and the tests that
fail without it. It is made from [hooks.toml](../src/openreg_doctor/hooks.toml) and the doctor.toml of each
package by `python -m tools.providers`; tests check
all rows, and fail when a new PyTorch has further hooks. "Since" is the first release with the hook, or
the oldest one that is served.
"""


@dataclass(frozen=True)
class Row:
    """One hook that PyTorch calls, or a few that belong together."""

    group: str
    name: str
    reader: str  # the code that uses it
    status: str  # IMPLEMENTED, or why there is nothing to implement
    code: tuple[Path, ...]
    tests: tuple[tuple[Path, str], ...]  # file and function of those that cover one of its hooks
    since: str = ""  # a release of PyTorch; empty: the oldest one that is served

    @property
    def key(self) -> str:
        """Returns the doctor's name of the row."""
        return f"{self.group}.{self.name}"


@dataclass(frozen=True)
class Group:
    """The rows of one interface."""

    key: str
    title: str
    about: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Declaration:
    """The content of a package's doctor.toml."""

    package: Package
    place: Path  # of the file, relative to the root
    data: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """Returns the package's folder, relative to the root."""
        return Path("packages") / self.package.folder.name

    def rows(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        """Returns the entries for rows, by group and name. An entry without code and status has the group's code."""
        return {
            (group, name): {**({} if "status" in entry else {"code": entries.get("code", [])}), **entry}
            for group, entries in self.data.get("hooks", {}).items()
            for name, entry in entries.items()
            if isinstance(entry, dict)
        }


def declarations(root: Path = ROOT) -> list[Declaration]:
    """Returns the declarations of all packages, first of those that initialize a device."""
    found = []
    for package in discover(root).values():
        place = Path("packages") / package.folder.name / "src" / package.import_name / DECLARATION
        if (root / place).is_file():
            found.append(Declaration(package, place, read_toml(root / place)))
    return sorted(found, key=lambda item: "backend" not in item.data)


def load(root: Path = ROOT) -> list[Group]:
    """Returns the table: the groups of QUESTIONS in their order, each with the rows that packages add at its end."""
    questions, declared, tests = read_toml(root / QUESTIONS), declarations(root), covering_tests(root)
    return [
        Group(key, table["title"], table["about"], tuple(_rows(key, table, declared, tests)))
        for key, table in questions.items()
    ]


def covering_tests(root: Path = ROOT) -> dict[str, list[tuple[Path, str]]]:
    """Returns the tests with the mark `covers`, as file and function, by what the mark names: "group.hook"."""
    found: dict[str, list[tuple[Path, str]]] = {}
    for path in sorted(root.glob("packages/*/tests/**/test_*.py")):
        text = path.read_text("utf-8")
        for function in ast.parse(text).body if MARK in text else ():
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                for hook in _covered(function):
                    found.setdefault(hook, []).append((path.relative_to(root), function.name))
    return found


def _covered(function: ast.FunctionDef) -> Iterator[str]:
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == MARK:
            yield from map(ast.literal_eval, mark.args)


def _rows(
    group: str, table: Mapping[str, Any], declared: list[Declaration], tests: Mapping[str, list[tuple[Path, str]]]
) -> Iterator[Row]:
    entries: dict[str, Mapping[str, Any]] = {name: item for name, item in table.items() if isinstance(item, dict)}
    for item in declared:
        for (of, name), entry in item.rows().items():
            if of == group and "reader" in entry:
                entries.setdefault(name, entry)
    for name, entry in entries.items():
        said = [(item.folder, item.rows()[group, name]) for item in declared if (group, name) in item.rows()]
        code = tuple(folder / path for folder, row in said for path in row.get("code", ()))
        covered = tuple(dict.fromkeys(test for hook in name.split(", ") for test in tests.get(f"{group}.{hook}", ())))
        statuses = [row["status"] for _, row in said if "status" in row]
        answered = any(answers(row) for _, row in said)
        status = statuses[0] if statuses and not answered else IMPLEMENTED
        yield Row(group, name, entry["reader"], status, code, covered, entry.get("since", ""))


def answers(row: Mapping[str, Any]) -> bool:
    """Returns True if a package implements a row, rather than stating why it does not."""
    return bool(row.get("code")) and "status" not in row


def problems(root: Path = ROOT) -> list[str]:
    """Returns one line for each error in the declarations, and for each row without implementation or test."""
    groups = load(root)
    known = {row.key for group in groups for row in group.rows}
    found = [problem for group in groups for row in group.rows for problem in problems_of(root, row)]
    for item in declarations(root):
        name = item.package.import_name
        if item.package.entry_points.get(GROUP) != {name: name}:
            wanted = f'[project.entry-points."{GROUP}"] {name} = "{name}"'
            found.append(f"{item.folder}/pyproject.toml: {DECLARATION} is not announced; it needs {wanted}")
        found += [
            f"{item.place}: no hook {group}.{name} is known; correct the name, or name its caller (reader)"
            for group, name in item.rows()
            if f"{group}.{name}" not in known
        ]
    hooks = {f"{row.group}.{hook}" for group in groups for row in group.rows for hook in row.name.split(", ")}
    for hook, tests in covering_tests(root).items():
        if hook not in hooks:
            found += [f"{path.as_posix()}: {function} covers {hook}, which is no hook" for path, function in tests]
    return found


def problems_of(root: Path, row: Row) -> Iterator[str]:
    """Yields one line for each error of a row."""
    place = row.key
    if row.status == IMPLEMENTED:
        if not row.code:
            yield f"{place}: no package answers, and none says why not"
        if not row.tests:
            yield f"{place}: implemented, but no test covers it (@{MARK})"
    elif not row.status.startswith(OTHER_STATUSES):
        yield f"{place}: the status should begin with one of {OTHER_STATUSES}, got {row.status!r}"
    for path in row.code:
        if not (root / path).is_file():
            yield f"{place}: no file {path.as_posix()}"


def link(target: Path, text: str) -> str:
    """Returns a Markdown link from the page to a file of the repository."""
    return f"[{text}]({Path(os.path.relpath(target, PAGE.parent)).as_posix()})"


def render_row(row: Row) -> str:
    """Returns the line of a row in the Markdown table."""
    names = "<br>".join(f"`{name}`" for name in row.name.split(", ")) if " " in row.name else f"`{row.name}`"
    code = "<br>".join(link(path, path.name) for path in row.code)
    tests = [f"{link(path, path.stem)}: {name.removeprefix('test_').replace('_', ' ')}" for path, name in row.tests]
    return f"| {names} | {row.reader} | {row.since or OLDEST} | {row.status} | {code} | {'<br>'.join(tests)} |"


def render(root: Path = ROOT) -> str:
    """Returns the text of the page."""
    parts = [HEADING]
    for group in load(root):
        parts.append(f"\n## {group.title}\n\n{group.about}\n\n")
        parts.append("| Hook | Used by | Since | Status | Where | Tests |\n| --- | --- | --- | --- | --- | --- |\n")
        parts += [render_row(row) + "\n" for row in group.rows]
    return "".join(parts)


def models(root: Path = ROOT) -> dict[str, Any]:
    """Returns where each row is implemented, or why it is not, for users without any of the packages."""
    rows: dict[str, dict[str, Any]] = {}
    for row in (row for group in load(root) for row in group.rows):
        code = {"code": [path.as_posix() for path in row.code]} if row.code else {}
        entry = code | ({"status": row.status} if row.status != IMPLEMENTED else {})
        rows |= {row.key: entry} if entry else {}
    return {"where": WHERE, "rows": rows}


def absent_packages(root: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns the doctor's data about each of these packages, for users who have not installed it.

    Leaves out packages without a declaration.
    """
    declared = {item.package.name: item for item in declarations(root)}
    return {
        name: {
            "module": item.package.import_name,
            "without": item.data.get("without", ""),
            "settings": list(item.data.get("settings", {})),
            "hooks": [f"{group}.{row}" for (group, row), entry in item.rows().items() if answers(entry)],
        }
        for name in names
        if (item := declared.get(name)) is not None
    }
