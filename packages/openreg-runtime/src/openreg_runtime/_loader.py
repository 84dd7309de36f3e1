# SPDX-License-Identifier: BSD-3-Clause
"""Imports the installed plug-ins: the modules that packages name in the entry point group ``openreg.plugins``."""

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
    """A distribution with entry points in the group ``openreg.plugins``."""

    modules: list[str]  # the values of the entry points
    requirements: set[str]  # normalized names of distributions


def load_plugins() -> None:
    """Imports every plug-in, after the plug-ins of the distributions that its distribution requires.

    A package of the entry point group ``torch.backends`` calls this when torch is imported; programs may call it too.
    Has no effect on modules that are imported already. Raises ImportError if a plug-in was compiled for another ABI
    number of the runtime or another torch, before its import, or if its import fails. The message names the plug-in,
    its distribution, the root cause and the remedy. The plug-in's exception is chained.

    If a program imports an openreg package before torch, torch calls this during the runtime's own import. Plug-ins
    need a complete runtime, so they are then imported in the last step of its import. A failure of that step becomes a
    ``RuntimeWarning``, because the runtime itself works.
    """
    if _is_being_imported(RUNTIME):
        sys.modules[RUNTIME]._after_startup.append(_load_remaining)
    else:
        _load_all()


def _load_remaining() -> None:
    """Imports every plug-in in the last step of the runtime's import, and warns if that fails."""
    try:
        _load_all()
    except ImportError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)


def _load_all() -> None:
    """Imports every plug-in, after the plug-ins of the distributions that its distribution requires.

    Only warns about a failure of a plug-in that requires one whose import is still in progress.
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
            if _is_being_imported(module):
                incomplete.add(distribution)


def _is_being_imported(module: str) -> bool:
    """Returns True if an import of the module is in progress, such as the one that called load_plugins()."""
    loaded = sys.modules.get(module)
    return getattr(getattr(loaded, "__spec__", None), "_initializing", False)


def _check_and_import(module: str, distribution: str) -> None:
    if not is_module_name(module):
        raise ImportError(no_module_name(module, distribution))
    require_matching_build(module)
    _import(module, distribution)


def _import(module: str, distribution: str) -> Any:
    try:
        # importlib.import_module() fails if two threads wait for each other's imports.
        __import__(module)
    except (Exception, SystemExit) as error:
        raise ImportError(explain(error, module, distribution), name=module) from error
    return sys.modules[module]


def _too_early(error: ImportError, module: str, needed: set[str]) -> str:
    """Returns the warning about a plug-in that requires the distributions `needed`, whose imports are in progress."""
    names = ", ".join(sorted(needed))
    return (
        f"{error}. It needs {names}, which the program imported before torch and which is incomplete until that import "
        f"ends: import torch first, or {module} afterwards"
    )


def _installed() -> dict[str, _Package]:
    """Returns the distributions with plug-ins by their normalized names, except the runtime, which is imported."""
    packages: dict[str, _Package] = {}
    for point in entry_points(group=GROUP):
        if point.value != RUNTIME:
            name, requirements = _describe(point)
            packages.setdefault(name, _Package([], requirements)).modules.append(point.value)
    return packages


def _describe(point: EntryPoint) -> tuple[str, set[str]]:
    """Returns the normalized names of a plug-in's distribution and of its requirements, including those of extras."""
    metadata = point.dist.metadata if point.dist is not None else None  # reads the file each time
    if point.dist is None or metadata is None or "Name" not in metadata:
        return _normalized(point.name), set()
    names = [re.match(r"[A-Za-z0-9._-]+", line) for line in point.dist.requires or ()]
    return _normalized(metadata["Name"]), {_normalized(found.group()) for found in names if found}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _in_dependency_order(packages: Mapping[str, _Package]) -> list[str]:
    """Returns the distributions by name, but each after those that it requires. Cycles are allowed."""
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
