# SPDX-License-Identifier: BSD-3-Clause
"""The table of what PyTorch asks of the device: checked against the tree, and written as a page.

usage: python -m tools.hooks    writes packages/openreg-runtime/docs/hooks.md from hooks.toml beside it
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.packages import ROOT
from tools.torch_release import SUPPORTED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path("packages/openreg-runtime/docs")
DATA = FOLDER / "hooks.toml"
PAGE = FOLDER / "hooks.md"

OLDEST = SUPPORTED[0]
IMPLEMENTED = "implemented"
# How any other status begins: it says why there is nothing to implement, or who implements it.
OTHER_STATUSES = ("not applicable: ", "inherited: ", "brought by openreg-")

HEADING = """\
# What PyTorch asks of the device, and who answers

PyTorch finds an accelerator's parts by name: functions of `torch.openreg`, virtual functions of C++
interfaces, registrations. This page lists them all, each with the file that answers and the tests that
fail without the answer. It is made from [hooks.toml](hooks.toml) by `python -m tools.hooks`; tests keep
both true, and fail when a new PyTorch asks for more. "Since" is the release that began to ask, or
the oldest one that is served.
"""


@dataclass(frozen=True)
class Row:
    """One thing, or a few that belong together, that PyTorch asks for."""

    group: str
    name: str
    reader: str
    status: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    since: str = ""  # a release of PyTorch; empty: the oldest one that is served


@dataclass(frozen=True)
class Group:
    """The rows of one interface."""

    key: str
    title: str
    about: str
    rows: tuple[Row, ...]


def load(root: Path = ROOT) -> list[Group]:
    """The table, in the order of the file."""
    data: dict[str, dict[str, Any]] = tomllib.loads((root / DATA).read_text("utf-8"))
    return [
        Group(
            key,
            table["title"],
            table["about"],
            tuple(
                Row(
                    key,
                    name,
                    entry["reader"],
                    entry.get("status", IMPLEMENTED),
                    tuple(entry.get("code", [] if "status" in entry else table["code"])),
                    tuple(entry.get("tests", [])),
                    entry.get("since", ""),
                )
                for name, entry in table.items()
                if isinstance(entry, dict)
            ),
        )
        for key, table in data.items()
    ]


def code_path(name: str) -> Path:
    """Where a file of the table is: `runtime/csrc/x.cpp` belongs to the package openreg-runtime."""
    package, _, rest = name.partition("/")
    return Path("packages") / f"openreg-{package}" / rest


def test_path(name: str) -> tuple[Path, str]:
    """File and function of a test of the table: `runtime/test_x.py::test_y`."""
    place, _, function = name.partition("::")
    package, _, file = place.partition("/")
    return Path("packages") / f"openreg-{package}" / "tests" / file, function


def functions_of(path: Path) -> set[str]:
    """Names of the functions at the top level of a Python file."""
    if not path.is_file():
        return set()
    return {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


def problems(root: Path = ROOT) -> list[str]:
    """One line for each thing that the table says and that is not so."""
    return [problem for group in load(root) for row in group.rows for problem in problems_of(root, row)]


def problems_of(root: Path, row: Row) -> Iterator[str]:
    """The same for one row."""
    place = f"{DATA}: {row.group}.{row.name}"
    if row.status == IMPLEMENTED:
        if not row.tests:
            yield f"{place}: implemented, but no test fails without it"
    elif not row.status.startswith(OTHER_STATUSES):
        yield f"{place}: the status should begin with one of {OTHER_STATUSES}, got {row.status!r}"
    for name in row.code:
        if not (root / code_path(name)).is_file():
            yield f"{place}: no file {code_path(name)}"
    for name in row.tests:
        path, function = test_path(name)
        if function not in functions_of(root / path):
            yield f"{place}: no test {function} in {path}"


def link(target: Path, text: str) -> str:
    """A link from the page to a file of the repository."""
    return f"[{text}]({Path(os.path.relpath(target, FOLDER)).as_posix()})"


def render_row(row: Row) -> str:
    """One line of the Markdown table."""
    names = "<br>".join(f"`{name}`" for name in row.name.split(", ")) if " " in row.name else f"`{row.name}`"
    code = "<br>".join(link(code_path(name), Path(name).name) for name in row.code)
    tests = []
    for name in row.tests:
        path, function = test_path(name)
        tests.append(f"{link(path, path.stem)}: {function.removeprefix('test_').replace('_', ' ')}")
    return f"| {names} | {row.reader} | {row.since or OLDEST} | {row.status} | {code} | {'<br>'.join(tests)} |"


def render(root: Path = ROOT) -> str:
    """The page."""
    parts = [HEADING]
    for group in load(root):
        parts.append(f"\n## {group.title}\n\n{group.about}\n\n")
        parts.append("| What | Who asks | Since | Status | Where | Tests |\n| --- | --- | --- | --- | --- | --- |\n")
        parts += [render_row(row) + "\n" for row in group.rows]
    return "".join(parts)


def main() -> None:
    """Writes the page."""
    (ROOT / PAGE).write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
