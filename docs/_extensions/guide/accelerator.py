# SPDX-License-Identifier: BSD-3-Clause
"""The table of what PyTorch has for every accelerator, and the directive `accelerator-api`, which shows it.

The rows are in docs/reference/accelerator_api.toml. The names that need a row, and the numbers of lines, are those of
the installed PyTorch.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from docutils import nodes

from guide.repository import ROOT
from guide.tables import TableDirective

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = ROOT / "docs" / "reference" / "accelerator_api.toml"
_FOLDER = Path(torch.__file__).parent


class TableError(Exception):
    """An error for a row that does not fit the installed PyTorch; the message names the row."""


@dataclass(frozen=True)
class Row:
    """One function or class; the file describes the fields."""

    name: str
    cuda: str
    example: str
    setup: str = ""
    differs: str = ""
    file: str = ""
    text: str = ""
    since: str = ""

    def line(self) -> int:
        """Returns the number of the line with `text` in the file of the installed PyTorch.

        Raises TableError if the file does not contain it.
        """
        lines = (_FOLDER / self.file).read_text("utf-8").splitlines()
        found = next((number for number, line in enumerate(lines, 1) if self.text in line), None)
        if found is None:
            raise TableError(
                f"{self.name}: torch {torch.__version__} has no {self.text!r} in {self.file}; correct the row"
            )
        return found


@dataclass(frozen=True)
class Group:
    """The rows of one module or class of PyTorch. ``names`` is an expression for the names that need a row, if any."""

    key: str
    title: str
    names: str = ""
    rows: list[Row] = field(default_factory=list)


def groups() -> list[Group]:
    """Returns the table, without the rows of releases that are later than the installed PyTorch."""
    found = []
    for key, table in tomllib.loads(TABLE.read_text("utf-8")).items():
        rows = [Row(name, **row) for name, row in table.items() if isinstance(row, dict)]
        installed = [row for row in rows if not row.since or release(row.since) <= release(torch.__version__)]
        found.append(Group(key, table["title"], table.get("names", ""), installed))
    return found


def release(version: str) -> tuple[int, int]:
    """Returns the major and the minor number of a version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def public(owner: type) -> list[str]:
    """Returns the names of a class that do not begin with an underscore."""
    return [name for name in dir(owner) if not name.startswith("_")]


def differences(group: Group) -> list[str]:
    """Returns one line for each name without a row, and for each row without a name, of the installed PyTorch."""
    if not group.names:
        return []
    names = set(eval(group.names, {"torch": torch, "sys": sys, "public": public}))
    rows = {row.name for row in group.rows}
    return [
        *(
            f"{group.title}.{name}: torch {torch.__version__} has it, and it has no row"
            for name in sorted(names - rows)
        ),
        *(f"{group.title}.{name}: torch {torch.__version__} does not have it" for name in sorted(rows - names)),
    ]


class AcceleratorApiDirective(TableDirective):
    """Shows a table for each group. A difference between rows and the installed PyTorch is an error of the build."""

    def run(self) -> list[nodes.Node]:
        """Returns a section for each group that the installed PyTorch has."""
        self.env.note_dependency(str(TABLE))
        table = groups()
        problems = [problem for group in table for problem in differences(group)]
        if problems:
            raise self.error("accelerator-api: " + "; ".join(problems))
        found: list[nodes.Node] = []
        for group in (group for group in table if group.rows):
            section = self.section(group.key, group.title)
            cells = [[self.markdown(text) for text in self.cells(row)] for row in group.rows]
            section += self.table(["name", "for CUDA", "here", "decided by name in torch"], cells, [24, 28, 36, 22])
            found.append(section)
        return found

    def cells(self, row: Row) -> tuple[str, str, str, str]:
        """Returns the Markdown of a row."""
        cuda = row.cuda if row.cuda in ("", "the same") else f"`{row.cuda}`"
        try:
            place = f"`{row.file}`, line {row.line()}" if row.file else ""
        except TableError as error:
            raise self.error(f"accelerator-api: {error}") from error
        return f"`{row.name}`", cuda or "none", f"differs: {row.differs}" if row.differs else "works", place


def evaluate(row: Row, namespace: dict[str, Any]) -> bool:
    """Runs the setup of a row and returns whether its example is true."""
    exec(row.setup, namespace)
    return bool(eval(row.example, namespace))
