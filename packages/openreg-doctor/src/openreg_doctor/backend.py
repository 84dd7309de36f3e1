# SPDX-License-Identifier: BSD-3-Clause
"""What the packages of a backend declare of themselves, each in a file ``doctor.toml`` of its import package.

A package announces the file by an entry point of the group ``openreg_doctor.packages``, whose value is the import
package; it is read and nothing is imported. The README describes the form. The package that brings the device up may
have a second file with what is known of the device's packages that are not installed.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import installed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GROUP = "openreg_doctor.packages"
FILE = "doctor.toml"
# What a row has that is no text.
_KINDS = {"code": list, "tests": list, "required": bool}


@dataclass(frozen=True)
class Setting:
    """An environment variable that a package reads."""

    name: str
    default: str  # what holds where it is not set
    restricts: str = ""  # what the device does less, on purpose, under any other value
    withholds: bool = False  # whether that is to register less of what the package brings
    example: str = ""  # values that it takes, in Markdown
    meaning: str = ""  # what it changes, in Markdown


@dataclass(frozen=True)
class Fault:
    """A kind of failure of an import, known by what its error says.

    ``fix`` may have the fields {distribution} and {module}, of what does not load, and {torch}, which is wanted.
    """

    pattern: str
    name: str
    fix: str


@dataclass(frozen=True)
class Conflict:
    """A distribution that a package cannot stand beside."""

    distribution: str
    what: str
    costs: str
    fix: str


@dataclass(frozen=True)
class Package:
    """One package of a backend, installed or known to exist."""

    distribution: str
    module: str  # its import package
    device: str
    installed: bool = True
    without: str = ""  # what its absence costs
    settings: tuple[Setting, ...] = ()
    faults: tuple[Fault, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    hooks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # its rows, by group and name; see table.py
    root: Mapping[str, str] = field(default_factory=dict)  # of the package that brings the device up: [backend]

    def withheld(self) -> list[str]:
        """The settings of this process under which it registers less of what it brings, on purpose."""
        named = (setting for setting in self.settings if setting.withholds)
        return [item.name for item in named if os.environ.get(item.name, item.default) != item.default]

    @property
    def answers(self) -> list[str]:
        """The keys of the rows that it has code for and does not decline."""
        return [
            f"{group}.{name}"
            for group, rows in self.hooks.items()
            for name, entry in rows.items()
            if isinstance(entry, dict) and "status" not in entry and entry.get("code", rows.get("code"))
        ]


class DeclarationError(Exception):
    """A package's file cannot be used; the text is the end of a sentence about it."""


@dataclass(frozen=True)
class Backend:
    """The packages of one device, the one that brings it up first."""

    device: str
    packages: tuple[Package, ...]

    @property
    def root(self) -> Package:
        """The package that brings the device up; any other where that is not installed."""
        return self.packages[0]

    @property
    def prefix(self) -> str:
        """How the names of its settings begin; empty where that is not declared."""
        return self.root.root.get("settings", "")

    @property
    def settings(self) -> list[Setting]:
        """Those of all installed packages."""
        return [setting for package in self.packages if package.installed for setting in package.settings]

    @property
    def faults(self) -> list[Fault]:
        """Those of all installed packages."""
        return [fault for package in self.packages for fault in package.faults]

    @property
    def distributions(self) -> list[str]:
        """The names of its installed distributions, those of plug-ins that declare nothing included."""
        declared = (package.distribution for package in self.packages if package.installed)
        return list(dict.fromkeys([*declared, *(owner for owner, _ in self._plugins)]))

    @property
    def imports(self) -> tuple[str, ...]:
        """What brings the device up with all its plug-ins: module after module, also where a value names none.

        Each imports what it needs, so the order of the plug-ins is free.
        """
        return tuple(dict.fromkeys([self.root.module, *(module for _, module in self._plugins)]))

    def module_of(self, distribution: str) -> str:
        """The import package of a distribution."""
        modules = {package.distribution: package.module for package in self.packages}
        modules = {**{owner: module.partition(".")[0] for owner, module in self._plugins}, **modules}
        return modules.get(distribution, distribution.replace("-", "_"))

    def distribution_of(self, module: str) -> str:
        """The distribution that brings a module of the device; for others, the one that is usually called so."""
        owners = {package.module: package.distribution for package in self.packages}
        owners.update((value, owner) for owner, value in self._plugins)
        return owners.get(module) or installed.distribution_of(module)

    def known(self, distribution: str) -> Package | None:
        """The package of that name, installed or not."""
        return next((package for package in self.packages if package.distribution == distribution), None)

    def owners(self, key: str) -> list[Package]:
        """The packages that answer a row, or would."""
        return [package for package in self.packages if key in package.answers]

    @cached_property
    def _plugins(self) -> list[tuple[str, str]]:
        """Distributions that announce a plug-in of the device, each with the module that it names."""
        group = self.root.root.get("plugins", "")
        points = installed.entry_points(group) if group else ()
        return [(owner, point.value) for owner, point in points]


def declared() -> tuple[list[Backend], dict[str, str]]:
    """The backends whose packages are installed; and the packages whose file cannot be used, with the reason."""
    found: dict[str, list[Package]] = {}
    problems: dict[str, str] = {}
    for distribution, point in installed.entry_points(GROUP):
        try:
            package = read(distribution, point.value)
        except DeclarationError as error:
            problems[distribution] = str(error)
        else:
            found.setdefault(package.device, []).append(package)
    return [_backend(device, packages) for device, packages in found.items()], problems


def _backend(device: str, packages: Sequence[Package]) -> Backend:
    ordered = sorted(packages, key=lambda package: not package.root)
    present = {package.distribution for package in ordered}
    absent = [package for package in _absent(ordered[0]) if package.distribution not in present]
    return Backend(device, (*ordered, *absent))


def read(distribution: str, module: str) -> Package:
    """What a package declares. Raises DeclarationError."""
    try:
        return parse(distribution, module, tomllib.loads(_file(module, FILE).read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise DeclarationError(f"announces {module!r}, whose {FILE} cannot be read: {error}") from error


def parse(distribution: str, module: str, data: Mapping[str, Any]) -> Package:
    """The package of a parsed file. Raises DeclarationError."""
    try:
        return Package(
            distribution,
            module,
            _text(data["device"]),
            without=_text(data.get("without", "")),
            settings=tuple(Setting(name, **entry) for name, entry in data.get("settings", {}).items()),
            faults=tuple(Fault(**entry) for entry in data.get("faults", ())),
            conflicts=tuple(Conflict(name, **entry) for name, entry in data.get("conflicts", {}).items()),
            hooks=_hooks(data.get("hooks", {})),
            root={name: _text(value) for name, value in data.get("backend", {}).items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DeclarationError(f"announces {module!r}, whose {FILE} is not as it should be: {error!r}") from error


def _hooks(data: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    groups = {group: rows for group, rows in data.items() if isinstance(rows, dict)}
    wrong = [f"hooks.{group}" for group in data if group not in groups]
    rows = [(f"hooks.{group}.{name}", name, entry) for group in groups for name, entry in groups[group].items()]
    wrong += [key for key, name, entry in rows if not isinstance(entry, list if name == "code" else dict)]
    for key, _, entry in rows:
        for name, value in entry.items() if isinstance(entry, dict) else ():
            if not isinstance(value, _KINDS.get(name, str)):
                wrong.append(f"{key}.{name}")
    if wrong:
        raise TypeError(f"{wrong[0]} has a value of the wrong kind")
    return data


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _file(module: str, name: str) -> Path:
    """A file of an import package, which has two folders in an editable install. Raises FileNotFoundError."""
    folders = list(locations(module))
    for folder in folders:
        if (path := Path(folder, name)).is_file():
            return path
    raise FileNotFoundError(f"there is none in {', '.join(folders)}" if folders else "there is no such import package")


def locations(module: str) -> Iterator[str]:
    """The folders of an import package at the top level; none where it is not there. Nothing is imported."""
    if re.fullmatch(r"\w+", module):
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):  # a module of this process without a place
            spec = None
        yield from (spec.submodule_search_locations or ()) if spec is not None else ()


def _absent(root: Package) -> Iterator[Package]:
    """What the device's own package knows of the others: empty where it has no such file, or an unreadable one."""
    name = root.root.get("absent", "")
    try:
        data = json.loads(_file(root.module, name).read_text("utf-8"))["packages"] if name else {}
        for distribution, entry in data.items():
            hooks: dict[str, dict[str, Any]] = {}
            for key in entry["hooks"]:
                group, _, row = key.partition(".")
                hooks.setdefault(group, {})[row] = {"code": [distribution]}
            settings = tuple(Setting(item, "") for item in entry["settings"])
            yield Package(distribution, entry["module"], root.device, False, entry["without"], settings, hooks=hooks)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
