# SPDX-License-Identifier: BSD-3-Clause
"""Checks the layers of C++ folders: a file includes only files of its folder or of a lower layer, and in no cycle.

usage: python -m tools.layers

A README.md that has a table with the columns "layer" and "what belongs there" declares the order of the folders beside
it, the lowest first. tools/checks/repo_checks.py runs this check as one of its rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path

from tools.packages import ROOT, discover

NATIVE = {".cpp", ".h"}
BESIDE = {"include", "tests"}  # folders that are no layers: the public interface, and tests, which use all layers
HEAD = "| layer | what belongs there |\n|---|---|\n"
ROW = re.compile(r"\| `(\w+)` \| (.*) \|")
INCLUDE = re.compile(r'(?m)^#include "([^"]+)"')


def trees(root: Path) -> Iterator[Path]:
    """Yields the folders of C++ whose README.md declares layers."""
    for package in discover(root).values():
        for readme in sorted((package.folder / "csrc").rglob("README.md")):
            if HEAD in readme.read_text("utf-8"):
                yield readme.parent


def declared(tree: Path) -> list[str]:
    """Returns the layers that the README.md of a folder declares, the lowest first."""
    rows = takewhile(bool, (tree / "README.md").read_text("utf-8").partition(HEAD)[2].splitlines())
    matches = [match for match in map(ROW.fullmatch, rows) if match is not None]
    return [match[1] for match in matches if match[2].strip()]


def has_sources(folder: Path) -> bool:
    """Returns True if there is C++ in or below the folder, and the folder is no CMake project of its own."""
    is_project = (folder / "CMakeLists.txt").is_file()
    return not is_project and any(path.suffix in NATIVE for path in folder.rglob("*"))


def problems_of(tree: Path) -> list[str]:
    """Returns one line for each violation of the rules below a folder that declares layers.

    Violations are a folder without a layer or the reverse, an include of a higher layer, of another folder of the same
    layer, or without its folder, and a cycle of includes.
    """
    layers = declared(tree)
    folders = sorted(path.name for path in tree.iterdir() if path.name not in BESIDE and has_sources(path))
    problems = [f"{name}: no row in the table of layers" for name in folders if name not in layers]
    problems += [f"README.md: there is no layer {name}" for name in layers if name not in folders]
    files = sorted(path for name in layers for path in (tree / name).rglob("*") if path.suffix in NATIVE)
    graph: dict[Path, list[Path]] = {}
    for path in files:
        place = path.relative_to(tree)
        names = INCLUDE.findall(path.read_text("utf-8"))
        graph[place] = [Path(name) for name in names if (tree / name).is_file()]
        for name in names:
            if (path.parent / name).is_file():
                problems.append(f'{place}: write "{place.parent.as_posix()}/{name}", with its folder')
        for included in graph[place]:
            if layers.index(included.parts[0]) > layers.index(place.parts[0]):
                problems.append(f"{place}: includes {included.as_posix()}, which belongs to a higher layer")
            elif included.parts[0] == place.parts[0] and included.parent != place.parent:
                problems.append(f"{place}: includes {included.as_posix()}, of another folder of its layer")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " -> ".join(place.as_posix() for place in reversed(error.args[1]))
        problems.append(f"{circle}: these include each other in a circle")
    return problems


def includes_go_down(root: Path) -> list[str]:
    """Checks that includes go to the same folder or to a lower layer, name their folder, and form no cycle.

    Returns one line per violation.
    """
    return [f"{tree.relative_to(root)}/{problem}" for tree in trees(root) for problem in problems_of(tree)]


if __name__ == "__main__":
    raise SystemExit("\n".join(includes_go_down(ROOT)) or 0)
