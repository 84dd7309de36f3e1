# SPDX-License-Identifier: BSD-3-Clause
"""Finds the installed openreg packages and imports each of them once."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from openreg_autoload._failure import explain

# The package that all others build on.
RUNTIME = "openreg_runtime"

# A package announces itself by an entry point of this group, whose value is the module to import.
GROUP = "openreg.plugins"


def import_runtime() -> Any:
    """The runtime; it is incomplete where the import that led here is its own. Raises ImportError with the way out."""
    return _import(RUNTIME, "openreg-runtime")


def import_plugins() -> None:
    """Imports each announced module after those its distribution depends on; the runtime is complete.

    Raises ImportError that names the plug-in, its distribution and the way out.
    """
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        if point.value == RUNTIME:  # is there
            continue
        points.setdefault(_distribution(point), []).append(point)
    incomplete: set[str] = set()
    for distribution in _in_dependency_order(points):
        needed = incomplete.intersection(_requirements(points[distribution][0]))
        if needed:
            incomplete.add(distribution)
            warnings.warn(_too_early(distribution, needed), RuntimeWarning, stacklevel=2)
            continue
        for point in points[distribution]:
            _check_and_import(point.value, distribution)
            if is_being_imported(point.value):
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


def _too_early(distribution: str, needed: set[str]) -> str:
    names = ", ".join(sorted(needed))
    return (
        f"the openreg package {distribution} was not loaded: it needs {names}, which the program imported before torch "
        f"and which is incomplete while torch is being imported. Import torch first, or import {distribution}'s module "
        "afterwards"
    )


def _distribution(point: EntryPoint) -> str:
    if point.dist is None or "Name" not in point.dist.metadata:
        return _normalised(point.name)
    return _normalised(point.dist.name)


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _in_dependency_order(points: Mapping[str, list[EntryPoint]]) -> list[str]:
    """The distributions, each after those it requires, otherwise by name; cycles do no harm."""
    ordered: dict[str, None] = {}
    entered: set[str] = set()

    def visit(name: str) -> None:
        if name in entered:
            return
        entered.add(name)
        for requirement in sorted(_requirements(points[name][0])):
            if requirement in points:
                visit(requirement)
        ordered[name] = None

    for name in sorted(points):
        visit(name)
    return list(ordered)


def _requirements(point: EntryPoint) -> Iterator[str]:
    """The distributions that a plug-in's distribution asks for, also for an extra."""
    for line in (point.dist.requires if point.dist is not None else None) or ():
        found = re.match(r"[A-Za-z0-9._-]+", line)
        if found:
            yield _normalised(found.group())
