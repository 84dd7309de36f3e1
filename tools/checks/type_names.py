# SPDX-License-Identifier: BSD-3-Clause
"""Checks that one name stands for one type, in C++ and in Python, through all packages.

A reader who has learned what a `Block` is must not meet another one. Types inside of a type or a function are left
out, since the name around them says which one is meant, and so are aliases and the tests' types.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools.packages import discover

# Names that several types may have, with the reason.
SHARED = {
    "Access": "Python's form of the sanitizer's",
    "DeleteWithoutGil": "the same deleter, which modules that share no header need",
    "Event": "the driver's, its owner in C++, and PyTorch's class on it",
    "FallbackCount": "Python's form of C++'s",
    "Finding": "public in the doctor and in the sanitizer, whose C++ has its form",
    "Frame": "Python's form of the sanitizer's",
    "Graph": "the driver's, and PyTorch's class on it",
    "LaunchCounter": "the observer of templates/package, in each package that was made from it",
    "Life": "Python's form of the sanitizer's",
    "NullWarningHandler": "the same class; runtime and ops share public headers only",
    "Stream": "the driver's, and PyTorch's class on it",
}

# Nothing in a namespace is indented.
CPP_TYPE = re.compile(
    r"^(?:typedef )?(?:class|struct|union|enum(?: class)?) (?:alignas\([^)]*\) )?(?:[A-Z_]{4,} )?"
    r"(\w+)(?: final)?(?: :[^;]*)? \{",
    re.MULTILINE,
)


def types_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields the name and the file of each type of a package."""
    for top in ("csrc", "include", "src"):
        for path in sorted((folder / top).rglob("*")):
            if "tests" in path.relative_to(folder).parts:
                continue
            if path.suffix in (".h", ".cpp"):
                for found in CPP_TYPE.finditer(path.read_text("utf-8")):
                    yield found[1], path
            elif path.suffix == ".py":
                for node in ast.parse(path.read_text("utf-8")).body:
                    if isinstance(node, ast.ClassDef):
                        yield node.name, path


def types_have_names_of_their_own(root: Path) -> list[str]:
    """Checks that no two types of the packages have the same name, except those in SHARED."""
    files = defaultdict(set)
    for package in discover(root).values():
        for name, path in types_of(package.folder):
            files[name].add(path.relative_to(root).as_posix())
    return [
        f"{sorted(places)[1]}: the type {name} has the name of one in {sorted(places)[0]}; rename one of them, "
        "or give the reason in tools/checks/type_names.py"
        for name, places in sorted(files.items())
        if len(places) > 1 and name not in SHARED
    ]
