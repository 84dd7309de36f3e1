# SPDX-License-Identifier: BSD-3-Clause
"""The table of what PyTorch asks of a backend: hooks.toml, with the rows that packages of a backend add.

Where somebody answers a row, to copy from, stands in models.json, which is made from what the packages of this
repository declare. So it is told where none of them is installed.
"""

from __future__ import annotations

import json
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
MODELS = "models.json"
_THE_SAME = "the same"


@dataclass(frozen=True)
class Row:
    """One thing, or a few that belong together, that PyTorch asks for."""

    group: str
    name: str
    reader: str
    status: str  # empty: it is there to be implemented; else why there is nothing to implement
    cost: str  # what happens without it, where that is more than the reader's loss
    required: bool  # ordinary use of a device breaks without it
    code: tuple[str, ...] = ()  # where it is implemented, as paths of a repository
    where: str = ""  # that repository
    since: str = ""  # the release of torch that began to ask; empty: all that are served
    chapter: str = ""  # the page of the guide that is about it, as a path of that repository

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
        """Where somebody does it, to copy from; empty where nobody does."""
        return f"; model: {', '.join(self.code)} in {self.where}" if self.code else ""

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


def read(torch: str = "", packages: Iterable[Package] = (), folder: Path = FOLDER) -> list[Group]:
    """The table, with the rows that these packages add.

    `torch` is a version: what only later ones ask for is left out. Without it, nothing is.

    Raises FileNotFoundError if the files are not there.
    """
    data = tomllib.loads((folder / FILE).read_text("utf-8"))
    models = json.loads((folder / MODELS).read_text("utf-8"))
    return parse(data, models, torch, packages)


def parse(
    data: Mapping[str, Any], models: Mapping[str, Any], torch: str = "", packages: Iterable[Package] = ()
) -> list[Group]:
    """The table from the parsed files, as a version of torch has it."""
    release, packages = _release(torch), list(packages)
    return [
        Group(
            key,
            table["title"],
            tuple(row for row in _rows(key, table, models, packages) if not release or _release(row.since) <= release),
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


def _rows(group: str, table: Mapping[str, Any], models: Mapping[str, Any], packages: list[Package]) -> Iterator[Row]:
    entries = {name: entry for name, entry in table.items() if isinstance(entry, dict)}
    answered, statuses = {key for package in packages for key in package.answers}, dict[str, str]()
    for package in packages:
        for name, entry in package.hooks.get(group, {}).items():
            if isinstance(entry, dict) and "reader" in entry:
                entries.setdefault(name, entry)
            if isinstance(entry, dict) and "status" in entry:
                statuses[f"{group}.{name}"] = entry["status"]
    reader = ""
    for name, entry in entries.items():
        # "the same" is short for the reader of the row before.
        reader = reader if entry["reader"].startswith(_THE_SAME) else entry["reader"]
        key = f"{group}.{name}"
        model = models["rows"].get(key, {})
        yield Row(
            group,
            name,
            entry["reader"].replace(_THE_SAME, reader, 1) if reader != entry["reader"] else reader,
            "" if key in answered else statuses.get(key, model.get("status", "")),
            entry.get("cost", ""),
            entry.get("required", False),
            tuple(model.get("code", ())),
            models["where"],
            entry.get("since", ""),
            entry.get("chapter", table.get("chapter", "")),
        )
