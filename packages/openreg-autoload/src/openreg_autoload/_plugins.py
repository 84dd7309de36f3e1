# SPDX-License-Identifier: BSD-3-Clause
"""Finds the installed openreg packages and imports each of them once."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from openreg_autoload._failure import explain

# The package that all others build on.
RUNTIME = "openreg_runtime"

# A package announces itself by an entry point of this group, whose value is the module to import.
GROUP = "openreg.plugins"


class _Package(NamedTuple):
    """A distribution that announces plug-ins."""

    modules: list[str]
    requirements: set[str]  # distributions


def import_runtime() -> Any:
    """The runtime; it is incomplete where the import that led here is its own. Raises ImportError with the way out."""
    return _import(RUNTIME, "openreg-runtime")


def import_plugins() -> None:
    """Imports each announced module after those its distribution depends on; the runtime is complete.

    Raises ImportError that names the plug-in, its distribution and the way out.
    """
    packages = _installed()
    incomplete: set[str] = set()
    for distribution in _in_dependency_order(packages):
        needed = incomplete & packages[distribution].requirements
        for module in packages[distribution].modules:
            try:
                _check_and_import(module, distribution)
            except ImportError as error:
                if not needed:
                    raise
                incomplete.add(distribution)
                warnings.warn(_too_early(error, module, needed), RuntimeWarning, stacklevel=2)
            if is_being_imported(module):
                incomplete.add(distribution)


def is_being_imported(module: str) -> bool:
    """Whether an import of the module is under way: the one that led here; it will finish."""
    loaded = sys.modules.get(module)
    return getattr(getattr(loaded, "__spec__", None), "_initializing", False)


def _check_and_import(module: str, distribution: str) -> None:
    if not re.fullmatch(r"\w+(\.\w+)*", module):
        raise ImportError(
            f"the openreg plug-in {module!r} of the package {distribution} is not the name of a module. The value of "
            f"an entry point of the group {GROUP} is a module, which is imported; nothing is called. "
            f"Correct it in the package, or go on without it: pip uninstall {distribution}"
        )
    sys.modules[RUNTIME].require_matching_build(module)
    _import(module, distribution)


def _import(module: str, distribution: str) -> Any:
    try:
        # Not importlib.import_module(), which fails where two threads wait for each other's imports.
        __import__(module)
    except (Exception, SystemExit) as error:
        raise ImportError(explain(error, module, distribution), name=module) from error
    return sys.modules[module]


def _too_early(error: ImportError, module: str, needed: set[str]) -> str:
    names = ", ".join(sorted(needed))
    return (
        f"{error}. It needs {names}, which the program imported before torch and which is incomplete until that import "
        f"ends: import torch first, or {module} afterwards"
    )


def _installed() -> dict[str, _Package]:
    """What is announced, by the normalised name of the distribution; the runtime, which is there, left out."""
    packages: dict[str, _Package] = {}
    for point in entry_points(group=GROUP):
        if point.value != RUNTIME:
            name, requirements = _describe(point)
            packages.setdefault(name, _Package([], requirements)).modules.append(point.value)
    return packages


def _describe(point: EntryPoint) -> tuple[str, set[str]]:
    """A plug-in's distribution, and those that this one asks for, also for an extra."""
    metadata = point.dist.metadata if point.dist is not None else None  # reads the file each time
    if point.dist is None or metadata is None or "Name" not in metadata:
        return _normalised(point.name), set()
    names = [re.match(r"[A-Za-z0-9._-]+", line) for line in point.dist.requires or ()]
    return _normalised(metadata["Name"]), {_normalised(found.group()) for found in names if found}


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _in_dependency_order(packages: Mapping[str, _Package]) -> list[str]:
    """The distributions, each after those it requires, otherwise by name; cycles do no harm."""
    ordered: dict[str, None] = {}
    entered: set[str] = set()

    def visit(name: str) -> None:
        if name in entered:
            return
        entered.add(name)
        for requirement in sorted(packages[name].requirements):
            if requirement in packages:
                visit(requirement)
        ordered[name] = None

    for name in sorted(packages):
        visit(name)
    return list(ordered)
