# SPDX-License-Identifier: BSD-3-Clause
"""What is installed, from the metadata of distributions; nothing is imported."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

BACKENDS = "torch.backends"


def normalised(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def all_distributions() -> dict[str, list[Distribution]]:
    """Every distribution on the path by name; the first of a list is the one that counts."""
    return _distributions(tuple(sys.path))


@cache
def _distributions(_path: tuple[str, ...]) -> dict[str, list[Distribution]]:
    """Read once: many findings ask whether some package is there."""
    found: dict[str, list[Distribution]] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(normalised(name), []).append(distribution)
    return found


def version(distribution: str) -> str:
    """The version of an installed distribution; empty if there is none."""
    found = all_distributions().get(distribution, [])
    return found[0].version if found else ""


def entry_points(group: str) -> Iterator[tuple[str, EntryPoint]]:
    """The entry points of a group, each with the name of its distribution; shadowed distributions are left out."""
    for name, (distribution, *_) in sorted(all_distributions().items()):
        for point in distribution.entry_points:
            if point.group == group:
                yield name, point


def required(distribution: str, name: str) -> str:
    """What an installed distribution asks of another, as "torch==2.13.*"; the other's name where it asks for none."""
    found = all_distributions().get(distribution, [])
    for requirement in (found[0].requires or ()) if found else ():
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        if match and normalised(match.group()) == name:
            return requirement.partition(";")[0].strip()
    return name


def distribution_of(module: str) -> str:
    """The distribution that is usually called so as a module is."""
    return normalised(module.partition(".")[0])


def copies(module: str) -> list[Path]:
    """The folders of the path that hold a package of this name, the one that is imported first."""
    found: dict[Path, None] = {}
    for folder in sys.path:
        path = Path(folder or ".") / module
        if (path / "__init__.py").is_file():
            found[path.resolve()] = None
    return list(found)
