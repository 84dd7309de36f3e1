# SPDX-License-Identifier: BSD-3-Clause
"""Installs a distribution in a second environment with links to the files of the first.

Each nox session has an environment of its own, and pip takes a minute of processor time to unpack and compile torch.
"""

from __future__ import annotations

import os
import shutil
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


def needed_by(name: str, environment: Path) -> list[Distribution]:
    """Returns a distribution of an environment and all that it requires there; nothing if it is not installed.

    A requirement can ask for extras, as those of torch's CUDA builds do: `cuda-toolkit[cudart]` requires a library.
    """
    (site,) = environment.glob(SITE_PACKAGES)
    installed = {requirement_name(item.name): item for item in distributions(path=[str(site)])}
    waiting = [Requirement(name)]
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        project = requirement_name(wanted.name)
        key = (project, frozenset(wanted.extras))
        if project not in installed or key in seen:
            continue
        seen.add(key)
        found[project] = installed[project]
        waiting += [
            item
            for item in map(Requirement, installed[project].requires or ())
            if item.marker is None or any(item.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras))
        ]
    return list(found.values())


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
