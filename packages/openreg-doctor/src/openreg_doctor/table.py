# SPDX-License-Identifier: BSD-3-Clause
"""Reads the hook table, which lists what a backend provides and PyTorch uses: hooks.toml, with additions.

A row is a hook, a name or a registration; the packages of the backend may add rows. hooks.toml names the files of
openreg that implement a row, as models to copy from.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .backend import Package

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent
FILE = "hooks.toml"
_REPOSITORY = "the repository of openreg"  # which contains the files that hooks.toml names
_THE_SAME = "the same"


@dataclass(frozen=True)
class HookRow:
    """One hook, name or registration that PyTorch uses, or a few that belong together."""

    group: str
    name: str
    reader: str  # the code of PyTorch, or the users, that read or call it
    status: str  # empty: backends implement it; otherwise why there is nothing to implement
    cost: str  # what happens without it, if that is more than a failure of the reader
    required: bool  # True: ordinary use of a device fails without it
    code: tuple[str, ...] = ()  # the files of openreg that implement it, as paths of its repository
    since: str = ""  # the first release of torch that uses it; empty: every supported one
    chapter: str = ""  # the page of the guide about it, as a path of that repository

    @property
    def key(self) -> str:
        """Returns "group.name", such as "guard.getStream": the name of the row's finding and exercise.

        An exercise is a call from Python that fails if the backend lacks the row.
        """
        return f"{self.group}.{self.name}"

    @property
    def names(self) -> list[str]:
        """Returns the hooks, names or registrations of the row, one by one."""
        return self.name.split(", ")

    @property
    def loss(self) -> str:
        """Returns what does not work in a backend without it."""
        return self.cost or f"the code that uses it fails, or works without it: {self.reader}"

    @property
    def model(self) -> str:
        """Returns the files to copy from, as the end of a sentence; empty if no file implements it."""
        return f"; model: {', '.join(self.code)} in {_REPOSITORY}" if self.code else ""

    @property
    def for_users_only(self) -> bool:
        """Returns True if users or other libraries use it, but PyTorch itself does not."""
        return self.reader.startswith(("users", "code "))


@dataclass(frozen=True)
class HookGroup:
    """The rows of one interface of PyTorch, such as DeviceGuardImplInterface, or of one kind, such as registrations."""

    key: str
    title: str
    about: str  # a sentence that describes the group
    rows: tuple[HookRow, ...]
    class_name: str = ""  # PyTorch's class; empty if there is none
    header: str = ""  # of a C++ class, below torch/include
    source: str = ""  # of a Python class, below torch


def read(torch: str = "", packages: Iterable[Package] = (), folder: Path = FOLDER) -> list[HookGroup]:
    """Returns the table with the rows that these packages add.

    ``torch`` is a version; rows that only later versions use are left out. If it is empty, all rows are returned.

    Raises FileNotFoundError if the file does not exist.
    """
    return parse(tomllib.loads((folder / FILE).read_text("utf-8")), torch, packages)


def parse(data: Mapping[str, Any], torch: str = "", packages: Iterable[Package] = ()) -> list[HookGroup]:
    """Returns the table from the parsed file, for a version of torch."""
    release, packages = _release(torch), list(packages)
    return [
        HookGroup(
            key,
            table["title"],
            table["about"],
            tuple(row for row in _rows(key, table, packages) if not release or _release(row.since) <= release),
            table.get("class", ""),
            table.get("header", ""),
            table.get("source", ""),
        )
        for key, table in data.items()
    ]


def _release(version: str) -> tuple[int, ...]:
    """Returns the major and minor number of a version; empty if the text is no version."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return tuple(int(part) for part in match.groups()) if match else ()


def _rows(group: str, table: Mapping[str, Any], packages: list[Package]) -> Iterator[HookRow]:
    entries = {name: entry for name, entry in table.items() if isinstance(entry, dict)}
    implemented, statuses = {key for package in packages for key in package.implements}, dict[str, str]()
    for package in packages:
        for name, entry in package.hooks.get(group, {}).items():
            if isinstance(entry, dict) and "reader" in entry:
                entries.setdefault(name, entry)
            if isinstance(entry, dict) and "status" in entry:
                statuses[f"{group}.{name}"] = entry["status"]
    reader = ""
    for name, entry in entries.items():
        # "the same" stands for the reader of the row before.
        reader = reader if entry["reader"].startswith(_THE_SAME) else entry["reader"]
        key = f"{group}.{name}"
        status: str = statuses.get(key, "") or entry.get("status", "")
        code_of_group = () if name not in table or "status" in entry else table.get("code", ())
        yield HookRow(
            group,
            name,
            entry["reader"].replace(_THE_SAME, reader, 1) if reader != entry["reader"] else reader,
            "" if key in implemented else status,
            entry.get("cost", ""),
            entry.get("required", False),
            tuple(entry.get("code", code_of_group)),
            entry.get("since", ""),
            entry.get("chapter", table.get("chapter", "")),
        )
