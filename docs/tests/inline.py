# SPDX-License-Identifier: BSD-3-Clause
"""Finds names in inline code of a page, also in roles that it shows, that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch
from guide.repository import ROOT, sessions, settings, sources, text_of
from guide.roles import CHECKS

from tools.pages.symbols import SymbolError

# Blocks of code, and directives other than those that hold text.
_FENCE = re.compile(r"(?ms)^ *(```+|:::+(?=\{(?!tab|grid|note|warning|tip|admonition|dropdown))).*?^ *\1 *$")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_ROLE = re.compile(r"\{[\w:]+\}`[^`]+`")
# Beginnings of paths from the root or in a package; others are paths inside a wheel or PyTorch.
_ROOTS = ("packages/", "tools/", "tests/", "docs/", "examples/", "benchmarks/", "templates/", ".ci/", ".github/")
_SETTING = re.compile(r"^(OPENREG_[A-Z_]+)(=.*)?$")
_MODULE_NAME = re.compile(r"^torch\.openreg((?:\.\w+)+)")
_C_NAME = re.compile(r"^(or[A-Z]\w+)(\(.*\))?$")
# A role that a page shows instead of using it, in two backticks, which Sphinx never sees.
_SHOWN_ROLE = re.compile(r"``[ ]?\{(\w+)\}`([^`]+)`[ ]?``")
# A name with a place to fill in, <name>, is none.
_SESSION = re.compile(r"^nox -s ([\w-]+)(?![\w<-])")


@cache
def words_of_code() -> frozenset[str]:
    """All words in C++ and Python of the packages, and in their build files."""
    found: set[str] = set()
    paths = [*sources("csrc", "include", "src", "tests"), *ROOT.glob("packages/*/CMakeLists.txt")]
    paths += [
        *ROOT.glob("packages/*/cmake/*"),
        *ROOT.glob("packages/*/csrc/*/cmake/*"),
        ROOT / "tools" / "sessions" / "package_session.py",
    ]
    for path in paths:
        found.update(re.findall(r"\w+", text_of(path)))
    return frozenset(found)


def exists_in(thing: object, names: str) -> bool:
    """Whether a chain of attributes leads somewhere."""
    for name in names.strip(".").split("."):
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


def problem_with(code: str) -> str:
    """What is wrong with a piece of inline code; empty if nothing is."""
    if code.startswith(_ROOTS) and not any(sign in code for sign in "*<{ "):
        path = code.partition("::")[0].rstrip("/")
        return "" if any((folder / path).exists() for folder in (ROOT, *ROOT.glob("packages/*"))) else f"no file {path}"
    if setting := _SETTING.match(code):
        name = setting.group(1)
        return "" if name in settings() | words_of_code() else f"no setting or macro {name}"
    if name_in_module := _MODULE_NAME.match(code):
        names = name_in_module.group(1)
        return "" if exists_in(torch.openreg, names) else f"torch.openreg has no {names.strip('.')}"
    if c_name := _C_NAME.match(code):
        return "" if c_name.group(1) in words_of_code() else f"no code has {c_name.group(1)}"
    if session := _SESSION.match(code):
        return "" if session.group(1) in sessions() else f"no nox session {session.group(1)}"
    return ""


def problem_with_role(role: str, text: str) -> str:
    """What is wrong with a role; empty if nothing is, or if it names nothing of the repository."""
    if role == "setting":
        return "" if text in settings() else f"no setting {text}"
    try:
        CHECKS.get(role, str)(text)
    except SymbolError as error:
        return str(error)
    return ""


def problems_with_shown_roles(text: str) -> Iterator[str]:
    """One line for each role that is shown to the reader and names what does not exist."""
    for role, name in _SHOWN_ROLE.findall(text):
        if problem := problem_with_role(role, name):
            yield f"{{{role}}}`{name}`: {problem}"


def problems(text: str) -> Iterator[str]:
    """One line for each name of what does not exist, in inline code or shown roles; other code is run or an excerpt."""
    yield from problems_with_shown_roles(text)
    text = _ROLE.sub("", _FENCE.sub("", text))
    for code in _CODE.findall(text):
        if problem := problem_with(code.strip()):
            yield f"`{code}`: {problem}"


def problems_of(path: Path) -> list[str]:
    """The same for a page."""
    return list(problems(path.read_text("utf-8")))
