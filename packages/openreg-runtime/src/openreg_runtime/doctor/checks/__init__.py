# SPDX-License-Identifier: BSD-3-Clause
"""One file per kind of check: ``TITLE``, ``POSITION`` in the report, and ``check(examination)``, a generator."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType

from ..examination import Examination
from ..finding import Finding, Section

Check = Callable[[Examination], Iterable[Finding]]


def all_checks() -> list[ModuleType]:
    """The modules of this folder, in the order of the report."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return sorted(modules, key=lambda module: module.POSITION)


def run(examination: Examination) -> list[Section]:
    """All findings."""
    return [Section(module.TITLE, tuple(module.check(examination))) for module in all_checks()]
