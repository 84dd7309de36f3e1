# SPDX-License-Identifier: BSD-3-Clause
"""Reads what the packages of a backend declare about themselves, each in a file ``doctor.toml`` of its import package.

A package announces the file by an entry point of the group ``openreg_doctor.packages``, whose value is the import
package. The file is read without an import. The README describes its format. The *device package* is the one that
initializes the device, and its file has a table ``[backend]``. It may have a second file about packages of the device
that are not installed. A *row* is one hook, name or registration that PyTorch uses (hooks.toml).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
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
# The fields of a row that are not strings, with their types: files with its code, files with its tests, and True if
# ordinary use of a device needs it.
_FIELD_TYPES = {"code": list, "tests": list, "required": bool}


@dataclass(frozen=True)
class Setting:
    """An environment variable that a package reads."""

    name: str
    default: str  # the value, or the behavior in words, if it is not set
    restricts: str = ""  # what any other value switches off on purpose
    withholds: bool = False  # True: any other value makes the package register fewer hooks
    example: str = ""  # accepted values, in Markdown
    meaning: str = ""  # what it changes, in Markdown


@dataclass(frozen=True)
class ImportFault:
    """A kind of import failure, recognized by a pattern in its error.

    ``fix`` may have the fields {distribution} and {module} of what does not load, and {torch}, the required torch.
    """

    pattern: str
    name: str
    fix: str


@dataclass(frozen=True)
class PackageConflict:
    """A distribution that cannot be installed beside a package."""

    distribution: str
    what: str  # the conflict, in words
    costs: str  # what goes wrong if both are installed
    fix: str  # the commands that repair the installation


@dataclass(frozen=True)
class Package:
    """One package of a backend, installed or only known from the declaration of another one."""

    distribution: str
    module: str  # its import package
    device: str
    installed: bool = True
    without: str = ""  # what does not work without it
    settings: tuple[Setting, ...] = ()
    faults: tuple[ImportFault, ...] = ()
    conflicts: tuple[PackageConflict, ...] = ()
    implements: tuple[str, ...] = ()  # keys of rows, such as "guard.getStream", and patterns, such as "guard.*"
    hooks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # [hooks], by group and name; see table.py
    backend_table: Mapping[str, str] = field(default_factory=dict)  # [backend]; empty unless it is the device package

    def withheld(self) -> list[str]:
        """Returns the names of environment variables that now make the package register fewer hooks, on purpose."""
        named = (setting for setting in self.settings if setting.withholds)
        return [item.name for item in named if os.environ.get(item.name, item.default) != item.default]


class DeclarationError(Exception):
    """An error in a package's file. Its text is the end of a sentence that begins with the package."""


@dataclass(frozen=True)
class DeclaredBackend:
    """The packages of one device, from their declarations. The device package is the first one."""

    device: str
    packages: tuple[Package, ...]

    @property
    def device_package(self) -> Package:
        """Returns the package that initializes the device, or another one if that is not installed."""
        return self.packages[0]

    @property
    def prefix(self) -> str:
        """Returns the beginning of the names of the backend's settings; empty if none is declared."""
        return self.device_package.backend_table.get("settings", "")

    @property
    def settings(self) -> list[Setting]:
        """Returns the settings of all installed packages."""
        return [setting for package in self.packages if package.installed for setting in package.settings]

    @property
    def faults(self) -> list[ImportFault]:
        """Returns the kinds of import failures that the packages declare; only installed ones declare any."""
        return [fault for package in self.packages for fault in package.faults]

    @property
    def distributions(self) -> list[str]:
        """Returns the names of the backend's installed distributions, including plug-ins without a doctor.toml."""
        declared = (package.distribution for package in self.packages if package.installed)
        return list(dict.fromkeys([*declared, *(owner for owner, _ in self._plugins)]))

    @property
    def imports(self) -> tuple[str, ...]:
        """Returns the modules that initialize the device with all its plug-ins.

        The plug-ins may be in any order, because each imports what it needs. An entry point that names no module is
        included, so that its import fails.
        """
        return tuple(dict.fromkeys([self.device_package.module, *(module for _, module in self._plugins)]))

    def module_of(self, distribution: str) -> str:
        """Returns the import package of a distribution."""
        modules = {package.distribution: package.module for package in self.packages}
        modules = {**{owner: module.partition(".")[0] for owner, module in self._plugins}, **modules}
        return modules.get(distribution, distribution.replace("-", "_"))

    def distribution_of(self, module: str) -> str:
        """Returns the distribution of a module of the device; for another module, the name that it usually has."""
        owners = {package.module: package.distribution for package in self.packages}
        owners.update((value, owner) for owner, value in self._plugins)
        return owners.get(module) or installed.distribution_of(module)

    def known(self, distribution: str) -> Package | None:
        """Returns the package of a distribution, installed or not; None if the backend has none."""
        return next((package for package in self.packages if package.distribution == distribution), None)

    def owners(self, key: str) -> list[Package]:
        """Returns the packages that implement a row, or would if they were installed.

        A pattern stands for the rows that no package names in full.
        """
        named = [package for package in self.packages if key in package.implements]
        return named or [
            package for package in self.packages if any(fnmatchcase(key, pattern) for pattern in package.implements)
        ]

    @cached_property
    def _plugins(self) -> list[tuple[str, str]]:
        """Returns the distributions that announce a plug-in of the device, each with the module that it names."""
        group = self.device_package.backend_table.get("plugins", "")
        points = installed.entry_points(group) if group else ()
        return [(owner, point.value) for owner, point in points]


def declared() -> tuple[list[DeclaredBackend], dict[str, str]]:
    """Returns the backends whose packages are installed, and the packages with an invalid file, with the reason."""
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


def _backend(device: str, packages: Sequence[Package]) -> DeclaredBackend:
    ordered = sorted(packages, key=lambda package: not package.backend_table)
    present = {package.distribution for package in ordered}
    absent = [package for package in _absent(ordered[0]) if package.distribution not in present]
    return DeclaredBackend(device, (*ordered, *absent))


def read(distribution: str, module: str) -> Package:
    """Returns what a package declares. Raises DeclarationError if its file is missing or invalid."""
    try:
        return parse(distribution, module, tomllib.loads(_file(module, FILE).read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise DeclarationError(f"announces {module!r}, whose {FILE} cannot be read: {error}") from error


def parse(distribution: str, module: str, data: Mapping[str, Any]) -> Package:
    """Returns the package of a parsed file. Raises DeclarationError for a missing field or one of a wrong type."""
    try:
        hooks = _hooks(data.get("hooks", {}))
        return Package(
            distribution,
            module,
            _text(data["device"]),
            without=_text(data.get("without", "")),
            settings=tuple(Setting(name, **entry) for name, entry in data.get("settings", {}).items()),
            faults=tuple(ImportFault(**entry) for entry in data.get("faults", ())),
            conflicts=tuple(PackageConflict(name, **entry) for name, entry in data.get("conflicts", {}).items()),
            implements=(*_texts(data.get("implements", [])), *_implemented(hooks)),
            hooks=hooks,
            backend_table={name: _text(value) for name, value in data.get("backend", {}).items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DeclarationError(f"announces {module!r}, whose {FILE} is invalid: {error!r}") from error


def _hooks(data: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Returns the table [hooks] of a doctor.toml. Raises TypeError if a value has the wrong type."""
    groups = {group: rows for group, rows in data.items() if isinstance(rows, dict)}
    wrong = [f"hooks.{group}" for group in data if group not in groups]
    rows = [(f"hooks.{group}.{name}", name, entry) for group in groups for name, entry in groups[group].items()]
    wrong += [key for key, name, entry in rows if not isinstance(entry, list if name == "code" else dict)]
    for key, _, entry in rows:
        for name, value in entry.items() if isinstance(entry, dict) else ():
            if not isinstance(value, _FIELD_TYPES.get(name, str)):
                wrong.append(f"{key}.{name}")
    if wrong:
        raise TypeError(
            f"{wrong[0]} has a value of the wrong type; groups and rows are tables, `code` and `tests` lists, "
            "`required` is true or false, and other fields are texts"
        )
    return data


def _implemented(hooks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yields the keys of the entries of [hooks] that the package implements: its own rows, and those with ``code``.

    An entry with a status says why there is nothing to implement. Before ``implements`` existed, packages named the
    rows of hooks.toml by files of code, of the entry or of its group.
    """
    for group, rows in hooks.items():
        entries = {name: entry for name, entry in rows.items() if isinstance(entry, dict)}
        for name, entry in entries.items():
            is_own_row, has_code = "reader" in entry, bool(entry.get("code", rows.get("code")))
            if (is_own_row or has_code) and "status" not in entry:
                yield f"{group}.{name}"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, but got {value!r}")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list of strings")
    return tuple(map(_text, value))


def _file(module: str, name: str) -> Path:
    """Returns the path of a file of an import package. Raises FileNotFoundError if it does not exist.

    In an editable install by scikit-build-core, a package has the folder of its sources and one in site-packages.
    """
    folders = list(locations(module))
    for folder in folders:
        if (path := Path(folder, name)).is_file():
            return path
    raise FileNotFoundError(f"it is not in {', '.join(folders)}" if folders else "there is no such import package")


def locations(module: str) -> Iterator[str]:
    """Yields the folders of a top-level import package without importing it; none if the package does not exist."""
    if re.fullmatch(r"\w+", module):
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):  # a module that this process created without a spec
            spec = None
        yield from (spec.submodule_search_locations or ()) if spec is not None else ()


def _absent(device_package: Package) -> Iterator[Package]:
    """Yields the packages in the device package's file about absent ones; stops if it is missing or invalid."""
    name = device_package.backend_table.get("absent", "")
    try:
        data = json.loads(_file(device_package.module, name).read_text("utf-8"))["packages"] if name else {}
        for distribution, entry in data.items():
            yield Package(
                distribution,
                entry["module"],
                device_package.device,
                installed=False,
                without=entry["without"],
                settings=tuple(Setting(item, "") for item in entry["settings"]),
                implements=_texts(entry["hooks"]),
            )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
