# SPDX-License-Identifier: BSD-3-Clause
"""Finds the names that pages may use: sources, environment variables, nox sessions and messages of this repository."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.packages import discover

ROOT = Path(__file__).resolve().parents[3]

# The text of a comment at which the tests of a page begin a new process, with its settings if there are any.
NEW_PROCESS = re.compile(r"new process(?::[ \t]*(.*))?")

# A setting, an environment variable that code reads. The code contains its name as a string. Settings of tests are left
# out, because the commands that run the tests set them (settings_of_tests in openreg-runtime's doctor.toml).
_SETTING = re.compile(r"\"(OPENREG_(?!TEST_)[A-Z_]*[A-Z])\"")
# The name of a session, if it is not that of its function.
_SESSION_NAME = re.compile(r"\bname='([^']+)'")
_STRING = re.compile(r"(?<!\w)[rbuf]{0,2}\"((?:[^\"\\\n]|\\.)*)\"|(?<!\w)[rbuf]{0,2}'((?:[^'\\\n]|\\.)*)'")
# Punctuation does not count in comparisons, because messages are composed of strings in many ways.
_NOT_A_LETTER = re.compile(r"[^a-z0-9]+")


def text_of(path: Path) -> str:
    """Returns the text of a file."""
    return path.read_text("utf-8")


def sources(*folders: str) -> Iterator[Path]:
    """Yields the C++ and Python files of all packages below these folders of each."""
    for package in discover(ROOT).values():
        for folder in folders:
            for path in sorted((package.folder / folder).rglob("*")):
                if path.suffix in {".cpp", ".h", ".py"}:
                    yield path


@cache
def settings() -> frozenset[str]:
    """Returns the environment variables that the packages read."""
    found: set[str] = set()
    for path in sources("csrc", "src"):
        found.update(_SETTING.findall(text_of(path)))
    return frozenset(found)


@cache
def sessions() -> frozenset[str]:
    """Returns the names of the nox sessions."""
    names = {f"test-{name}" for name in discover(ROOT)}
    for node in ast.parse(text_of(ROOT / "noxfile.py")).body:
        if isinstance(node, ast.FunctionDef):
            for decorator in map(ast.unparse, node.decorator_list):
                if decorator.startswith("nox.session"):
                    given = _SESSION_NAME.search(decorator)
                    names.add(given.group(1) if given else node.name)
    return frozenset(names)


def letters(text: str) -> str:
    """Returns a text in lower case without punctuation, which differs between a message and its strings in the code."""
    return _NOT_A_LETTER.sub(" ", text.lower()).strip()


@cache
def _strings() -> str:
    """Returns all string literals of the packages, file by file."""
    parts: list[str] = []
    for path in sources("csrc", "src", "include"):
        parts += [first or second for first, second in _STRING.findall(text_of(path))]
        parts.append("\n")
    return f" {letters(' '.join(parts))} "


def has_message(message: str) -> bool:
    """Returns True if every part of the message between `...` is in the string literals of the packages."""
    wanted = [letters(part) for part in message.split("...") if letters(part)]
    return bool(wanted) and all(f" {part} " in _strings() for part in wanted)
