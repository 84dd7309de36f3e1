# SPDX-License-Identifier: BSD-3-Clause
"""Reads versions, entry points and requirements of installed distributions from their metadata, without an import."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

BACKENDS = "torch.backends"  # the group of entry points that `import torch` calls


def normalized(name: str) -> str:
    """Returns a distribution's name in the form in which package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def all_distributions() -> dict[str, list[Distribution]]:
    """Returns every distribution on ``sys.path`` by name; the first of a list hides the others."""
    return _distributions(tuple(sys.path))


@cache
def _distributions(_path: tuple[str, ...]) -> dict[str, list[Distribution]]:
    """Reads the distributions once per ``sys.path``, because many findings look packages up."""
    found: dict[str, list[Distribution]] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(normalized(name), []).append(distribution)
    return found


def version(distribution: str) -> str:
    """Returns the version of a distribution; empty if it is not installed."""
    found = all_distributions().get(distribution, [])
    return found[0].version if found else ""


def entry_points(group: str) -> Iterator[tuple[str, EntryPoint]]:
    """Yields the entry points of a group, each with the name of its distribution. Leaves out hidden distributions."""
    for name, (distribution, *_) in sorted(all_distributions().items()):
        for point in distribution.entry_points:
            if point.group == group:
                yield name, point


def required(distribution: str, name: str) -> str:
    """Returns a distribution's requirement on the distribution ``name``, such as "torch==2.13.*"; ``name`` if none."""
    found = all_distributions().get(distribution, [])
    for requirement in (found[0].requires or ()) if found else ():
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        if match and normalized(match.group()) == name:
            return requirement.partition(";")[0].strip()
    return name


def distribution_of(module: str) -> str:
    """Returns the name that the distribution of a module usually has."""
    return normalized(module.partition(".")[0])


def copies(module: str) -> list[Path]:
    """Returns the folders of all packages of this name on ``sys.path``; the first one is imported."""
    found: dict[Path, None] = {}
    for folder in sys.path:
        path = Path(folder or ".") / module
        if (path / "__init__.py").is_file():
            found[path.resolve()] = None
    return list(found)
