# SPDX-License-Identifier: BSD-3-Clause
"""Installs a distribution in a second environment with links to the files of the first.

pip takes a minute of a processor to unpack and compile torch, and each session has an environment of its own.
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
    """Links the files of a distribution, and of all that it needs, from one environment into another.

    What the second environment has is left as it is, whatever its version. Programs are left out, as each names the
    interpreter that it was installed for.
    """
    (site,) = target.glob(SITE_PACKAGES)
    present = {requirement_name(item.name) for item in distributions(path=[str(site)])}
    for distribution in needed_by(name, source):
        if requirement_name(distribution.name) not in present:
            _link_files(distribution, site)


def needed_by(name: str, environment: Path) -> Iterator[Distribution]:
    """The distribution of that name in an environment, and all that it needs there; nothing where it is not."""
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
    except OSError:  # another disk, or one without links
        shutil.copy2(source, target)
