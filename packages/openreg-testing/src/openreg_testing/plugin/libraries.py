# SPDX-License-Identifier: BSD-3-Clause
"""The table of the environment variables from which libraries choose their device, and the code that sets them.

A library here is a project such as transformers, whose tests read the device to use from a variable.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import string
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from openreg_doctor import backend

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent
SPECIFICATION = FOLDER / "device_spec.py"  # a module that describes the device to transformers and diffusers
# The defaults of --device and --cuda-as. A run sets them to its own values, and processes that tests start inherit
# them, so that a pytest in one of them uses the device of this run.
DEVICE_VARIABLE = "OPENREG_TEST_DEVICE"
CUDA_VARIABLE = "OPENREG_TEST_CUDA_AS"  # the accelerator on which code that names cuda runs
FIELDS = ("device", "type", "module")  # fields in the values of variables, such as "{device}"
# Device types that are part of torch. Libraries know them by name and need no specification.
OF_TORCH = ("cpu", "cuda", "hpu", "meta", "mps", "mtia", "xla", "xpu")


@dataclass(frozen=True)
class Library:
    """The environment variables from which one library chooses its device."""

    name: str
    env: Mapping[str, str]  # variable -> value, which may contain the fields above
    spec: str = ""  # the variable for the path of a device specification; empty without one


def read(project: Path | None) -> list[Library]:
    """Returns the table of this package, extended by that of a project's pyproject.toml.

    Raises UsageError for an invalid file or table.
    """
    own = tomllib.loads((FOLDER / "libraries.toml").read_text("utf-8"))
    entries: dict[str, tuple[Any, str]] = {name: (entry, "libraries.toml") for name, entry in own.items()}
    if project is not None and project.is_file():
        try:
            data = tomllib.loads(project.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise pytest.UsageError(f"{project}: {error}") from None
        entries.update(_of_project(data.get("tool", {}).get("openreg-testing", {}), project))
    return [_library(name, entry, place) for name, (entry, place) in entries.items()]


def _of_project(table: Any, project: Path) -> Iterator[tuple[str, tuple[Any, str]]]:
    place = f"{project}: [tool.openreg-testing]"
    if not isinstance(table, dict) or not isinstance(table.get("libraries", {}), dict):
        raise pytest.UsageError(f"{place}: expected the tables [tool.openreg-testing.libraries.NAME]")
    for key in table:
        if key != "libraries":
            raise pytest.UsageError(f"{place}: unknown key {key!r}; accepted: libraries")
    for name, entry in table.get("libraries", {}).items():
        yield name, (entry, f"{project}: [tool.openreg-testing.libraries.{name}]")


def _library(name: str, entry: Any, place: str) -> Library:
    form = 'expected env = { VARIABLE = "{device}" }, spec = "VARIABLE", or both'
    if not isinstance(entry, dict) or not entry:
        raise pytest.UsageError(f"{place}: {form}; got {entry!r}")
    for key in entry:
        if key not in ("env", "spec"):
            raise pytest.UsageError(f"{place}: unknown key {key!r}; {form}")
    env, spec = entry.get("env", {}), entry.get("spec", "")
    if not isinstance(env, dict) or not isinstance(spec, str):
        raise pytest.UsageError(f"{place}: {form}; got {entry!r}")
    for variable, value in env.items():
        if not isinstance(value, str):
            raise pytest.UsageError(f"{place}: the value of {variable} must be a string, got {value!r}")
        _check_fields(variable, value, place)
    return Library(name, env, spec)


def _check_fields(variable: str, value: str, place: str) -> None:
    accepted = ", ".join(f"{{{name}}}" for name in FIELDS)
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(value) if name is not None]
    except ValueError as error:
        raise pytest.UsageError(f"{place}: {variable} = {value!r}: {error}; fields: {accepted}") from None
    for name in names:
        if name not in FIELDS:
            raise pytest.UsageError(f"{place}: {variable} = {value!r}: unknown field {{{name}}}; fields: {accepted}")


def module_of(device_type: str) -> str:
    """Returns the module whose import loads a device's backend. It does not import the module.

    The module is torch_<device> if there is one. Otherwise installed packages name it: by a doctor.toml for the device
    (the entry points openreg_doctor.packages), or by an entry point torch.backends with the device's name. Returns
    ``torch`` if no package names one.
    """
    if device_type in OF_TORCH:
        return f"torch.{device_type}" if device_type in ("cpu", "cuda", "mps", "mtia", "xpu") else "torch"
    if importlib.util.find_spec(f"torch_{device_type}") is not None:  # for example torch_npu, torch_musa, torch_openreg
        return f"torch_{device_type}"
    declared, _ = backend.declared()  # from the files doctor.toml
    for item in declared:
        if item.device == device_type:
            return item.device_package.module
    for point in entry_points(group="torch.backends"):
        if device_type in (point.name, point.name.removeprefix("torch_")):
            return point.module
    return "torch"


def restore_variable(name: str, before: str | None) -> None:
    """Gives an environment variable its value from before; with None, deletes it, if the tests have not done so."""
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before


@dataclass
class Environment:
    """The environment variables of a test run until ``restore()``; variables that the user has set stay unchanged."""

    device: str  # the name that Python code sees
    target: str  # the device that runs the tests, as processes that tests start get it
    set_here: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)  # library -> the user's variables, which are kept
    _before: dict[str, str | None] = field(default_factory=dict)
    _module: str = ""

    def apply(self, libraries: list[Library]) -> None:
        """Sets the variables of each library, except of libraries of which the user has set one to another value."""
        device_type = self.device.partition(":")[0]
        fields = {"device": self.device, "type": device_type, "module": module_of(device_type)}
        custom = device_type not in OF_TORCH
        for library in libraries:
            variables = {name: value.format(**fields) for name, value in library.env.items()}
            if library.spec and custom:
                variables[library.spec] = str(SPECIFICATION)
            others = [name for name, value in variables.items() if self._is_set_by_user(name, value)]
            if others:
                self.kept[library.name] = ", ".join(f"{name}={os.environ[name]}" for name in others)
                continue
            for name, value in variables.items():
                self._set(name, value)
        self._set(DEVICE_VARIABLE, self.target)
        if custom:
            self._make_importable()

    def restore(self) -> None:
        """Restores the environment variables from before ``apply()``."""
        for name, value in self._before.items():
            restore_variable(name, value)
        sys.modules.pop(self._module, None)

    def _is_set_by_user(self, name: str, value: str) -> bool:
        """Returns True if the environment had another value of the variable before ``apply()``."""
        return os.environ.get(name, value) != value and name not in self._before

    def _set(self, name: str, value: str) -> None:
        self._before.setdefault(name, os.environ.get(name))
        os.environ[name] = value
        self.set_here[name] = value

    def _make_importable(self) -> None:
        # transformers and diffusers import the path up to its first ".py" as a module name. Python would find
        # that module only in the working directory, so it is put into sys.modules under that name.
        path = str(SPECIFICATION)
        self._module = path[: path.index(".py")]
        sys.modules[self._module] = _Specification(self._module)


class _Specification(ModuleType):
    """The module of the device specification, which runs at the first access to an attribute, as it imports torch."""

    def __getattr__(self, name: str) -> Any:
        # Only what the specification defines, and not what it imports: pickle looks for the module of an object in all
        # modules, and would find torch.contiguous_format in one that has an attribute `torch`.
        if not name.isupper() or "DEVICE_NAME" in vars(self):
            raise AttributeError(f"module {str(SPECIFICATION)!r} has no attribute {name!r}")
        found = runpy.run_path(str(SPECIFICATION))
        vars(self).update({key: value for key, value in found.items() if key.isupper()})
        return getattr(self, name)
