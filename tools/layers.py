# SPDX-License-Identifier: BSD-3-Clause
"""Checks the layers of folders, in C++ and in Python: a file needs only files of its folder or of a lower layer.

usage: python -m tools.layers

A README.md that has a table with the columns "layer" and "what belongs there" declares the order of the folders beside
it, the lowest first. Files that need each other in a circle are rejected in those folders of C++ and in every Python
package. tools/checks/repo_checks.py runs both checks of this file as two of its rules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from itertools import takewhile
from pathlib import Path

from tools.packages import ROOT, discover

NATIVE = {".cpp", ".h"}
PYTHON = {".py", ".pyi"}
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
    """Returns the layers that the README.md of a folder declares, the lowest first; none without such a table."""
    readme = tree / "README.md"
    text = readme.read_text("utf-8") if readme.is_file() else ""
    rows = takewhile(bool, text.partition(HEAD)[2].splitlines())
    matches = [match for match in map(ROW.fullmatch, rows) if match is not None]
    return [match[1] for match in matches if match[2].strip()]


def has_sources(folder: Path, suffixes: set[str]) -> bool:
    """Returns True if there are sources in or below the folder, and the folder is no CMake project of its own."""
    is_project = (folder / "CMakeLists.txt").is_file()
    return not is_project and any(path.suffix in suffixes for path in folder.rglob("*"))


def table_problems(tree: Path, layers: Sequence[str], suffixes: set[str]) -> list[str]:
    """Returns one line for each folder with sources that has no row in the table, and for each row without a folder."""
    folders = sorted(path.name for path in tree.iterdir() if path.name not in BESIDE and has_sources(path, suffixes))
    missing = [f"{name}: no row in the table of layers" for name in folders if name not in layers]
    return missing + [f"README.md: there is no layer {name}" for name in layers if name not in folders]


def circle_in(graph: Mapping[Path, Sequence[Path]]) -> str:
    """Returns the files of one circle, each followed by one that it needs; an empty text if there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " -> ".join(place.as_posix() for place in reversed(error.args[1]))
    return ""


def problems_of(tree: Path) -> list[str]:
    """Returns one line for each violation of the rules below a folder of C++ that declares layers.

    Violations are a folder without a layer or the reverse, an include of a higher layer, of another folder of the same
    layer, or without its folder, and a circle of includes.
    """
    layers = declared(tree)
    problems = table_problems(tree, layers, NATIVE)
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
    if circle := circle_in(graph):
        problems.append(f"{circle}: these include each other in a circle")
    return problems


def includes_go_down(root: Path) -> list[str]:
    """Checks that includes go to the same folder or to a lower layer, name their folder, and form no circle.

    Returns one line per violation.
    """
    return [f"{tree.relative_to(root)}/{problem}" for tree in trees(root) for problem in problems_of(tree)]


def modules_of(tree: Path) -> dict[str, Path]:
    """Returns the files of a Python package by the names of their modules; an extension module is found by its stub."""
    modules = {}
    for path in sorted(tree.rglob("*"), reverse=True):  # x.py comes after x.pyi, and replaces it
        if path.suffix in PYTHON:
            parts = path.relative_to(tree.parent).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


# Cached, because the tests of tools/ check many copies of the same files.
@cache
def import_lines(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns what a file imports: pairs of a module, with the dots in front, and of the names that are taken from it.

    Imports in functions and those that only type checkers see count as well.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(("." * node.level + (node.module or ""), tuple(alias.name for alias in node.names)))
    return tuple(found)


def imported_by(name: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """Yields the modules of a package that one of its modules imports, without itself."""
    package = name if modules[name].stem == "__init__" else name.rpartition(".")[0]
    for written, names in import_lines(modules[name].read_text("utf-8")):
        module = resolve_name(written, package)
        inner = [f"{module}.{item}" for item in names]  # each a module, or else a name that the module itself defines
        found = {item if item in modules else module for item in inner} or {module}
        yield from (item for item in found if item in modules and item != name)


def beyond(place: Path, graph: Mapping[Path, Sequence[Path]], layers: Sequence[str]) -> list[Path]:
    """Returns the files in folders that a file imports, itself or through files that lie beside the folders."""
    found: set[Path] = set()
    pending = [*graph[place]]
    while pending:
        imported = pending.pop()
        if imported not in found:
            found.add(imported)
            pending += graph[imported] if imported.parts[0] not in layers else ()
    return sorted(item for item in found if item.parts[0] in layers)


def import_problems(tree: Path) -> list[str]:
    """Returns one line for each violation of the rules in a Python package.

    Violations are a circle of modules and, if the README.md declares layers, a folder without a layer or the reverse,
    and an import of a higher layer. An import through a module beside the folders counts, too: it needs that layer.
    """
    layers = declared(tree)
    problems = table_problems(tree, layers, PYTHON) if layers else []
    modules = modules_of(tree)
    places = {name: path.relative_to(tree) for name, path in modules.items()}
    graph = {places[name]: sorted({places[item] for item in imported_by(name, modules)}) for name in sorted(modules)}
    for place in graph:
        for imported in beyond(place, graph, layers) if place.parts[0] in layers else ():
            if layers.index(imported.parts[0]) > layers.index(place.parts[0]):
                by = "" if imported in graph[place] else ", through a file beside the folders"
                problems.append(f"{place}: imports {imported.as_posix()}{by}, which belongs to a higher layer")
    if circle := circle_in(graph):
        problems.append(f"{circle}: these import each other in a circle")
    return problems


def imports_go_down(root: Path) -> list[str]:
    """Checks that the modules of a package import those of their own folder or of lower layers, and form no circle.

    Returns one line per violation.
    """
    packages = [package.folder / "src" / package.import_name for package in discover(root).values()]
    return [f"{tree.relative_to(root)}/{problem}" for tree in packages for problem in import_problems(tree)]


if __name__ == "__main__":
    raise SystemExit("\n".join(includes_go_down(ROOT) + imports_go_down(ROOT)) or 0)
