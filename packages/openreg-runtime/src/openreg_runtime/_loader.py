# SPDX-License-Identifier: BSD-3-Clause
"""Imports the installed packages that announce themselves as plug-ins, each once."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from openreg_runtime._failure import explain
from openreg_runtime._plugins import GROUP, RUNTIME, is_module_name, no_module_name, require_matching_build


class _Package(NamedTuple):
    """A distribution that announces plug-ins."""

    modules: list[str]
    requirements: set[str]  # distributions


def load_plugins() -> None:
    """Imports every module announced in the group ``openreg.plugins``, each after those its distribution requires.

    Whoever brings the device up for others calls it, as the entry point of ``torch.backends`` does; what is imported
    already stays as it is. A plug-in compiled for another ABI or torch is refused before it is imported. Raises
    ImportError that names the plug-in that failed, its distribution, the root cause and the way out; the plug-in's own
    exception is chained.

    Where the call comes from the runtime's own start-up (the program imported an openreg package before torch, which
    then called the entry point), the plug-ins need a runtime that is complete: they are imported as its last step, and
    one that fails becomes a ``RuntimeWarning``, so that the runtime is not lost with it.
    """
    if _is_being_imported(RUNTIME):
        sys.modules[RUNTIME]._after_startup.append(_load_remaining)
    else:
        _load_all()


def _load_remaining() -> None:
    try:
        _load_all()
    except ImportError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)


def _load_all() -> None:
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
            if _is_being_imported(module):
                incomplete.add(distribution)


def _is_being_imported(module: str) -> bool:
    """Whether an import of the module is under way: the one that led here; it will finish."""
    loaded = sys.modules.get(module)
    return getattr(getattr(loaded, "__spec__", None), "_initializing", False)


def _check_and_import(module: str, distribution: str) -> None:
    if not is_module_name(module):
        raise ImportError(no_module_name(module, distribution))
    require_matching_build(module)
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
    """What is announced, by the normalized name of the distribution; the runtime, which is there, left out."""
    packages: dict[str, _Package] = {}
    for point in entry_points(group=GROUP):
        if point.value != RUNTIME:
            name, requirements = _describe(point)
            packages.setdefault(name, _Package([], requirements)).modules.append(point.value)
    return packages


def _describe(point: EntryPoint) -> tuple[str, set[str]]:
    """Returns a plug-in's distribution and the names of those that it requires, extras included."""
    metadata = point.dist.metadata if point.dist is not None else None  # reads the file each time
    if point.dist is None or metadata is None or "Name" not in metadata:
        return _normalized(point.name), set()
    names = [re.match(r"[A-Za-z0-9._-]+", line) for line in point.dist.requires or ()]
    return _normalized(metadata["Name"]), {_normalized(found.group()) for found in names if found}


def _normalized(name: str) -> str:
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
