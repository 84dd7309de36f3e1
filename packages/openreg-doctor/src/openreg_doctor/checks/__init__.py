# SPDX-License-Identifier: BSD-3-Clause
"""Runs the checks, which make findings from the results of an examination.

Each module of this folder is a check. It has a ``TITLE``, a number ``POSITION`` by which the sections of the report are
sorted, and the generator ``check(examination)``, which yields findings.

Other packages add checks by entry points of the group ``openreg_doctor.checks``. The value names a function that takes
the examination and returns a section. The module of the function is loaded without its package, because the package's
import is examined and may fail or take long. So the module ``openreg_x._doctor`` has the name
``_examined_openreg_x._doctor`` here. It imports modules of its package relatively, and besides them only the standard
library and the doctor.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from operator import attrgetter
from types import ModuleType

from .. import installed
from ..backend import locations
from ..examination import Examination
from ..finding import Finding, Section

GROUP = "openreg_doctor.checks"
_PREFIX = "_examined_"  # begins the names under which packages of checks are in sys.modules

Check = Callable[[Examination], Section]


def own_checks() -> list[ModuleType]:
    """Returns the modules of this folder, in the order of the report."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return sorted(modules, key=lambda module: module.POSITION)


def run(examination: Examination) -> list[Section]:
    """Runs all checks and returns their sections, in the order of the report."""
    sections = [Section(module.TITLE, tuple(module.check(examination)), module.POSITION) for module in own_checks()]
    sections += [_run_foreign(owner, point, examination) for owner, point in installed.entry_points(GROUP)]
    return sorted(sections, key=lambda section: section.position)


def _run_foreign(owner: str, point: EntryPoint, examination: Examination) -> Section:
    """Returns the section of another package's check, or one with the check's error if the check fails."""
    try:
        section = _load(point.value)(examination)
        if not isinstance(section, Section) or not all(isinstance(item, Finding) for item in section.findings):
            raise TypeError(f"expected a Section of Findings, but it returned {section!r}")
    except (Exception, SystemExit) as error:
        what = f"the check {point.name} = {point.value} of {owner} fails: {type(error).__name__}: {error}"
        fix = f"pip install --upgrade {owner}, or report the error to its maintainers"
        return Section("Checks", (Finding(f"checks.{point.name}", "problem", what, "what it checks is unknown", fix),))
    return section


def _load(value: str) -> Check:
    """Returns the function of an entry point's value, package.module:function, without importing the package."""
    module, _, name = value.partition(":")
    package, dot, rest = module.partition(".")
    stand_in = _PREFIX + package  # an empty package whose submodules are those of the real one
    if stand_in not in sys.modules:
        folders = list(locations(package))
        if not folders:
            raise ModuleNotFoundError(f"there is no package {package!r}")
        sys.modules[stand_in] = ModuleType(stand_in)
        sys.modules[stand_in].__path__ = folders
    if not (dot and name):
        raise ValueError(f"{value!r} is not of the form package.module:function")
    found: Check = attrgetter(name)(importlib.import_module(f"{stand_in}.{rest}"))
    return found
