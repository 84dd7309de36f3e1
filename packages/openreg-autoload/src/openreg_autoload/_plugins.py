# SPDX-License-Identifier: BSD-3-Clause
"""Finds the installed openreg packages and imports each of them once."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

# The package that all others build on.
RUNTIME = "openreg_runtime"

# A package announces itself by an entry point of this group, whose value is the module to import.
GROUP = "openreg.plugins"


def import_plugins() -> None:
    """Imports the runtime, then each announced module after those its distribution depends on.

    Raises ImportError that names the plug-in, its distribution and the way out.
    """
    _import(RUNTIME, "openreg-runtime")
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(_distribution(point), []).append(point)
    for distribution in _in_dependency_order(points):
        for point in points[distribution]:
            if not _is_being_imported(point.value):
                _import(point.value, distribution)


def _import(module: str, distribution: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:
        raise ImportError(
            f"the openreg plug-in {module!r} of the package {distribution} failed to load: "
            f"{_root_cause(error)}. Repair it with: pip install --force-reinstall {distribution}; "
            f"or remove it with: pip uninstall {distribution}",
            name=module,
        ) from error


def _root_cause(error: BaseException) -> str:
    """The exception that the others were raised from, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0].rstrip('.')}"


def _is_being_imported(module: str) -> bool:
    """Whether an import of the module is under way: the one that led here; it will finish."""
    loaded = sys.modules.get(module)
    return loaded is not None and getattr(loaded.__spec__, "_initializing", False)


def _distribution(point: EntryPoint) -> str:
    return _normalised(point.dist.name) if point.dist is not None else point.name


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
