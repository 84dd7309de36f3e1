# SPDX-License-Identifier: BSD-3-Clause
"""Checks which packages of the device are installed, that they fit each other, and that no copy hides another."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution

from packaging.requirements import InvalidRequirement, Requirement

from .. import installed
from ..backend import DeclaredBackend
from ..examination import Examination
from ..finding import Finding

TITLE = "Packages"
POSITION = 20


def check(examination: Examination) -> Iterator[Finding]:
    """Yields findings about each package of the backend, its requirements and its copies on ``sys.path``.

    The packages follow from the files doctor.toml of installed packages. If none of them declares the examined device,
    the findings are only about packages whose doctor.toml is invalid (``undeclared``).
    """
    for name, reason in examination.undeclared.items():
        what = f"{name} {reason}"
        fix = f"pip install --upgrade --force-reinstall {name}, or report the error to its maintainers"
        yield Finding(f"packages.{name}.declaration", "warning", what, "the doctor cannot check what it provides", fix)
    backend = examination.backend
    if backend is None:
        return
    found = installed.all_distributions()
    names = {package.distribution for package in backend.packages} | set(backend.distributions)
    for name in sorted(names):
        yield from _package(name, backend, found)
    yield from _copies("torch")
    for package in backend.packages:
        for conflict in package.conflicts:
            if package.installed and conflict.distribution in found:
                check_name = f"packages.{package.distribution}.conflicts.{conflict.distribution}"
                yield Finding(check_name, "problem", conflict.what, conflict.costs, conflict.fix)


def _package(name: str, backend: DeclaredBackend, found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    module = backend.module_of(name)
    yield from _copies(module)
    if name not in found:
        yield _absent(name, module, backend)
        return
    distribution, *hidden = found[name]
    if hidden:
        versions = " and ".join(f"{item.version} in {item.locate_file('')}" for item in found[name])
        yield Finding(
            f"packages.{name}.versions",
            "problem",
            f"{name} is installed more than once: {versions}",
            "what is imported and what pip shows may differ",
            f"pip uninstall {name} until none is left, then pip install {name}",
        )
    broken = list(_requirements(name, distribution, backend, found))
    yield from broken
    if not broken:
        yield Finding(f"packages.{name}", "ok", f"{name} {distribution.version}")


def _without(name: str, backend: DeclaredBackend) -> str:
    """Returns the text of a finding about the features that a missing package provides; empty if none is declared."""
    package = backend.known(name)
    return f"without it: {package.without}" if package is not None and package.without else ""


def _absent(name: str, module: str, backend: DeclaredBackend) -> Finding:
    if installed.copies(module):
        what = f"{module} is on the path, but no distribution {name} is installed"
        return Finding(f"packages.{name}", "warning", what, "pip cannot check its version", f"pip install {name}")
    costs = _without(name, backend) or "what it provides is missing"
    return Finding(f"packages.{name}", "note", f"{name} is not installed", costs, f"pip install {name}")


def _requirements(
    name: str, distribution: Distribution, backend: DeclaredBackend, found: dict[str, list[Distribution]]
) -> Iterator[Finding]:
    """Yields a finding for each requirement that is not installed, or in a version that does not fit."""
    for line in distribution.requires or ():
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed = installed.normalized(requirement.name)
        present = found[needed][0].version if needed in found else None
        if present is not None and requirement.specifier.contains(present, prereleases=True):
            continue
        state = "is not installed" if present is None else f"is {present}"
        yield Finding(
            f"packages.{name}.requires.{needed}",
            "problem",
            f"{name} {distribution.version} needs {requirement.name}{requirement.specifier}, which {state}",
            _without(needed, backend) or f"{name} may not load, or fail later",
            f"pip install '{requirement.name}{requirement.specifier}', or another {name}",
        )


def _copies(module: str) -> Iterator[Finding]:
    places = installed.copies(module)
    if len(places) > 1:
        yield Finding(
            f"packages.{module}.copies",
            "problem",
            f"{module} is on the path {len(places)} times: {places[0]} hides {', '.join(map(str, places[1:]))}",
            "Python imports one version and pip checks another; native parts of two versions do not fit each other",
            f"remove one of them: check PYTHONPATH and the current directory, or pip uninstall {module}",
        )
