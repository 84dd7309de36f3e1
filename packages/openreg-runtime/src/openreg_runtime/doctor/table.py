# SPDX-License-Identifier: BSD-3-Clause
"""The table of what PyTorch asks of a backend: docs/hooks.toml, which the wheel carries as ``hooks.toml``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "hooks.toml"
_THE_SAME = "the same"


def in_repository(paths: Iterable[str]) -> str:
    """The table's paths, which begin with a package, as a reader finds them; wheels do not have these files."""
    return f"{', '.join(f'packages/openreg-{path}' for path in paths)} in the repository of openreg"


@dataclass(frozen=True)
class Row:
    """One thing, or a few that belong together, that PyTorch asks for."""

    group: str
    name: str
    reader: str
    status: str  # empty: openreg implements it
    cost: str  # what happens without it, where that is more than the reader's loss
    required: bool  # ordinary use of a device breaks without it
    code: tuple[str, ...]  # where openreg implements it
    since: str = ""  # the release of torch that began to ask; empty: all that are served

    @property
    def key(self) -> str:
        """The name of the row's finding and exercise."""
        return f"{self.group}.{self.name}"

    @property
    def names(self) -> list[str]:
        """The things, one by one."""
        return self.name.split(", ")

    @property
    def loss(self) -> str:
        """What a backend without it does not have."""
        return self.cost or f"what asks for it fails, or does without: {self.reader}"

    @property
    def model(self) -> str:
        """Where openreg does it, to copy from."""
        return in_repository(self.code)

    @property
    def for_users_only(self) -> bool:
        """Whether PyTorch itself never asks for it."""
        return self.reader.startswith(("users", "code "))


@dataclass(frozen=True)
class Group:
    """The rows of one interface."""

    key: str
    title: str
    rows: tuple[Row, ...]
    class_name: str = ""  # PyTorch's class; empty where there is none
    header: str = ""  # of a C++ class, below torch/include
    source: str = ""  # of a Python class, below torch


def read(folders: Iterable[str], torch: str = "") -> list[Group]:
    """The table, from the first folder that has it: the package's folders, two of them in an editable install.

    `torch` is a version: what only later ones ask for is left out. Without it, nothing is.

    Raises FileNotFoundError if none has it.
    """
    candidates = [Path(folder, FILE) for folder in folders]
    for path in candidates:
        if path.is_file():
            return parse(tomllib.loads(path.read_text("utf-8")), torch)
    raise FileNotFoundError(f"{FILE} is in none of {[str(path.parent) for path in candidates]}")


def parse(data: dict[str, dict[str, Any]], torch: str = "") -> list[Group]:
    """The table from the parsed file, as a version of torch has it."""
    release = _release(torch)
    return [
        Group(
            key,
            table["title"],
            tuple(row for row in _rows(key, table) if not release or _release(row.since) <= release),
            table.get("class", ""),
            table.get("header", ""),
            table.get("source", ""),
        )
        for key, table in data.items()
    ]


def _release(version: str) -> tuple[int, ...]:
    """Major and minor number of a version; nothing of what is none."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return tuple(int(part) for part in match.groups()) if match else ()


def _rows(group: str, table: dict[str, Any]) -> Iterator[Row]:
    reader = ""
    for name, entry in table.items():
        if not isinstance(entry, dict):
            continue
        # "the same" is short for the reader of the row before.
        reader = reader if entry["reader"].startswith(_THE_SAME) else entry["reader"]
        yield Row(
            group,
            name,
            entry["reader"].replace(_THE_SAME, reader, 1) if reader != entry["reader"] else reader,
            entry.get("status", ""),
            entry.get("cost", ""),
            entry.get("required", False),
            tuple(entry.get("code", table["code"])),
            entry.get("since", ""),
        )
