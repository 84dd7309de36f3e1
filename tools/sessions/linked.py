# SPDX-License-Identifier: BSD-3-Clause
"""Installs a distribution in a second environment with links to the files of the first.

Each nox session has an environment of its own, and pip takes a minute of processor time to unpack and compile torch.
"""

from __future__ import annotations

import os
import shutil
from importlib.metadata import Distribution, PackagePath, distributions
from pathlib import Path

from packaging.requirements import Requirement

from tools._platform import SITE_PACKAGES
from tools.packages import requirement_name


def link_distribution(name: str, source: Path, target: Path) -> None:
    """Links the files of a distribution and of all its requirements from one environment into another.

    Requirements that the second environment has are left unchanged, whatever their version. But if it has another
    version of the distribution itself, that and the requirements with other versions are replaced. Programs are not
    linked, because each contains the path of the interpreter for which it was installed.
    """
    (site,) = target.glob(SITE_PACKAGES)
    # An interrupted link leaves files without METADATA.
    complete = (item for item in distributions(path=[str(site)]) if item.read_text("METADATA"))
    present = {requirement_name(item.name): item for item in complete}
    needed = needed_by(name, source)
    outdated = any(name == requirement_name(item.name) and _differs(item, present.get(name)) for item in needed)
    # The distribution itself comes last, so that an interrupted replacement is repeated.
    for distribution in reversed(needed):
        old = present.get(requirement_name(distribution.name))
        if outdated and old is not None and _differs(distribution, old):
            _remove_files(old, site)
            old = None
        if old is None:
            _link_files(distribution, site)


def _differs(wanted: Distribution, old: Distribution | None) -> bool:
    return old is not None and old.version != wanted.version


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


def _files(distribution: Distribution) -> list[PackagePath]:
    """Returns the files of a distribution without its programs: METADATA last, with which it counts as installed."""
    found = [file for file in distribution.files or () if ".." not in file.parts]
    return sorted(found, key=lambda file: (_is_metadata(file), file.name == "METADATA"))


def _is_metadata(file: PackagePath) -> bool:
    return file.parts[0].endswith(".dist-info")


def _link_files(distribution: Distribution, site: Path) -> None:
    for file in _files(distribution):
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        _link(Path(str(distribution.locate_file(file))), path)


def _remove_files(distribution: Distribution, site: Path) -> None:
    files = _files(distribution)
    for file in files:
        (site / file).unlink(missing_ok=True)
    for folder in {file.parts[0] for file in files if _is_metadata(file)}:
        shutil.rmtree(site / folder, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)  # of an interrupted link, or a file that two distributions have
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target)
