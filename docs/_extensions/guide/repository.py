# SPDX-License-Identifier: BSD-3-Clause
"""What this repository has and pages may name: files, settings, sessions, messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.packages import discover

ROOT = Path(__file__).resolve().parents[3]

# What stands behind the sign of a comment where the tests of a page begin a new process, perhaps with settings.
NEW_PROCESS = re.compile(r"new process(?::[ \t]*(.*))?")

# A setting is a name that code asks the environment for, so it stands there as a string.
# Those of tests are told by who runs them (settings_of_tests in openreg-runtime's doctor.toml).
_SETTING = re.compile(r"\"(OPENREG_(?!TEST_)[A-Z_]*[A-Z])\"")
# Sessions are called as their functions, or by a name that is given.
_SESSION_NAME = re.compile(r"\bname='([^']+)'")
_STRING = re.compile(r"(?<!\w)[rbuf]{0,2}\"((?:[^\"\\\n]|\\.)*)\"|(?<!\w)[rbuf]{0,2}'((?:[^'\\\n]|\\.)*)'")
# Punctuation is left out of the comparison: a message is put together from strings in many ways.
_NOT_A_LETTER = re.compile(r"[^a-z0-9]+")


def text_of(path: Path) -> str:
    """A file's text."""
    return path.read_text("utf-8")


def sources(*folders: str) -> Iterator[Path]:
    """The C++ and Python files of all packages under these folders of each."""
    for package in discover(ROOT).values():
        for folder in folders:
            for path in sorted((package.folder / folder).rglob("*")):
                if path.suffix in {".cpp", ".h", ".py"}:
                    yield path


@cache
def settings() -> frozenset[str]:
    """The environment variables that the packages read."""
    found: set[str] = set()
    for path in sources("csrc", "src"):
        found.update(_SETTING.findall(text_of(path)))
    return frozenset(found)


@cache
def sessions() -> frozenset[str]:
    """The names of the nox sessions."""
    names = {f"test-{name}" for name in discover(ROOT)}
    for node in ast.parse(text_of(ROOT / "noxfile.py")).body:
        if isinstance(node, ast.FunctionDef):
            for decorator in map(ast.unparse, node.decorator_list):
                if decorator.startswith("nox.session"):
                    given = _SESSION_NAME.search(decorator)
                    names.add(given.group(1) if given else node.name)
    return frozenset(names)


def letters(text: str) -> str:
    """Text without what may differ between a message and the strings that it is put together from."""
    return _NOT_A_LETTER.sub(" ", text.lower()).strip()


@cache
def _strings() -> str:
    """All string literals of the packages, each file's one after the other."""
    parts: list[str] = []
    for path in sources("csrc", "src", "include"):
        parts += [first or second for first, second in _STRING.findall(text_of(path))]
        parts.append("\n")
    return f" {letters(' '.join(parts))} "


def has_message(message: str) -> bool:
    """Whether the packages can say this: every part between `...` stands in their strings, whatever is filled in."""
    wanted = [letters(part) for part in message.split("...") if letters(part)]
    return bool(wanted) and all(f" {part} " in _strings() for part in wanted)
