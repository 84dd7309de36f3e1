# SPDX-License-Identifier: BSD-3-Clause
"""Which packages are there, whether they fit each other, and whether one hides another."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution

from packaging.requirements import InvalidRequirement, Requirement

from .. import installed
from ..examination import Examination
from ..finding import Finding

TITLE = "Packages"
POSITION = 20

# What an absent package costs.
_KNOWN = {
    "openreg-runtime": "everything",
    "openreg-ops": "tensors on the device",
    "openreg-amp": 'torch.autocast("openreg")',
    "openreg-autoload": "the device after `import torch` alone; programs have to import openreg_runtime",
    "openreg-meta": "`import torch_openreg`",
}
_IMPORT_NAMES = {"openreg-meta": "torch_openreg"}


def check(examination: Examination) -> Iterator[Finding]:
    """For openreg: each package, its requirements, its copies. Other backends name their packages as they like."""
    if not examination.order.own:
        return
    found = installed.all_distributions()
    names = {name for name in found if name.startswith(installed.PREFIX)} | set(_KNOWN)
    for name in sorted(names):
        yield from _package(name, found)
    yield from _copies("torch")
    if "torch-openreg" in found and "openreg-meta" in found:
        yield Finding(
            "packages.torch_openreg",
            "problem",
            "PyTorch's example backend torch-openreg and openreg-meta both install a package torch_openreg",
            "files of one overwrite the other's, and both name a device openreg",
            "pip uninstall torch-openreg openreg-meta, then pip install openreg-meta",
        )


def _package(name: str, found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    module = _IMPORT_NAMES.get(name, name.replace("-", "_"))
    yield from _copies(module)
    if name not in found:
        yield _absent(name, module)
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
    broken = list(_requirements(name, distribution, found))
    yield from broken
    if not broken:
        yield Finding(f"packages.{name}", "ok", f"{name} {distribution.version}")


def _absent(name: str, module: str) -> Finding:
    if installed.copies(module):
        what = f"{module} is on the path, but no distribution {name} is installed"
        return Finding(f"packages.{name}", "warning", what, "pip cannot check its version", f"pip install {name}")
    return Finding(
        f"packages.{name}", "note", f"{name} is not installed", f"without it: {_KNOWN[name]}", f"pip install {name}"
    )


def _requirements(name: str, distribution: Distribution, found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    """What the package declares and does not find."""
    for line in distribution.requires or ():
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed = installed.normalised(requirement.name)
        present = found[needed][0].version if needed in found else None
        if present is not None and requirement.specifier.contains(present, prereleases=True):
            continue
        state = "is not installed" if present is None else f"is {present}"
        yield Finding(
            f"packages.{name}.requires.{needed}",
            "problem",
            f"{name} {distribution.version} needs {requirement.name}{requirement.specifier}, which {state}",
            f"without it: {_KNOWN[needed]}" if needed in _KNOWN else f"{name} may not load, or fail later",
            f"pip install '{requirement.name}{requirement.specifier}', or another {name}",
        )


def _copies(module: str) -> Iterator[Finding]:
    places = installed.copies(module)
    if len(places) > 1:
        yield Finding(
            f"packages.{module}.copies",
            "problem",
            f"{module} is on the path {len(places)} times: {places[0]} hides {', '.join(map(str, places[1:]))}",
            "Python takes one version and pip another; native parts of two versions do not fit each other",
            f"remove one of them: look at PYTHONPATH and the current directory, or pip uninstall {module}",
        )
