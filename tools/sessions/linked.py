# SPDX-License-Identifier: BSD-3-Clause
"""Installs a distribution in a second environment with links to the files of the first.

Each nox session has an environment of its own, and pip takes a minute of processor time to unpack and compile torch.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

from tools._platform import SITE_PACKAGES
from tools.packages import requirement_name


def link_distribution(name: str, source: Path, target: Path) -> None:
    """Links the files of a distribution and of all its requirements from one environment into another.

    Distributions that the second environment has are left unchanged, whatever their version. Programs are not linked,
    because each contains the path of the interpreter for which it was installed.
    """
    (site,) = target.glob(SITE_PACKAGES)
    present = {requirement_name(item.name) for item in distributions(path=[str(site)])}
    for distribution in needed_by(name, source):
        if requirement_name(distribution.name) not in present:
            _link_files(distribution, site)


def needed_by(name: str, environment: Path) -> Iterator[Distribution]:
    """Yields a distribution of an environment and all that it requires there; nothing if it is not installed."""
    (site,) = environment.glob(SITE_PACKAGES)
    installed = {requirement_name(item.name): item for item in distributions(path=[str(site)])}
    waiting, seen = [requirement_name(name)], set()
    while waiting:
        distribution = installed.get(waiting.pop())
        if distribution is None or distribution.name in seen:
            continue
        seen.add(distribution.name)
        yield distribution
        requirements = map(Requirement, distribution.requires or ())
        waiting += [
            requirement_name(item.name)
            for item in requirements
            if item.marker is None or item.marker.evaluate({"extra": ""})
        ]


def _link_files(distribution: Distribution, site: Path) -> None:
    for file in distribution.files or ():
        if ".." not in file.parts:
            path = site / file
            path.parent.mkdir(parents=True, exist_ok=True)
            _link(Path(str(distribution.locate_file(file))), path)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target)
