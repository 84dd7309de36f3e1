# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx roles for names of this repository. A name that does not exist is an error of the build."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from contextlib import suppress

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from guide.repository import ROOT, has_message, sessions, text_of
from tools.pages.symbols import AmbiguousSymbolError, SymbolError, find_symbol

# A function that takes the text of a role and returns the text to show. It raises SymbolError for a wrong text.
Check = Callable[[str], str]


def check_path(text: str) -> str:
    """Checks a file or folder, whose path is relative to the repository's root."""
    if not (ROOT / text).exists():
        raise SymbolError(f"no file or folder {text}")
    return text


def check_test(text: str) -> str:
    """Checks a test: `packages/openreg-runtime/tests/allocator/test_storage.py::test_a_negative_size_is_refused`."""
    name, _, function = text.partition("::")
    path = ROOT / name
    if not path.is_file():
        raise SymbolError(f"no file {name}")
    names = {node.name for node in ast.walk(ast.parse(text_of(path))) if isinstance(node, ast.FunctionDef)}
    if function and function not in names:
        raise SymbolError(f"no test {function} in {name}")
    return text


def check_session(text: str) -> str:
    """Checks the name of a nox session, which may have arguments after `--`. Returns the command."""
    name = text.split(" -- ")[0]
    if name not in sessions():
        raise SymbolError(f"no nox session {name}; there are {', '.join(sorted(sessions()))}")
    return f"nox -s {text}"


def check_symbol(text: str) -> str:
    """Checks a symbol: `DeviceGuardImpl::exchangeDevice <packages/.../guard.cpp>`. Returns it without the path."""
    match = re.fullmatch(r"(.+?)\s*<([^<>]+)>", text)
    if match is None:
        raise SymbolError(f"write the file of {text} behind it, in angle brackets")
    symbol, name = match.groups()
    if not (ROOT / name).is_file():
        raise SymbolError(f"no file {name}")
    with suppress(AmbiguousSymbolError):  # the name of several symbols refers to all of them
        find_symbol(ROOT / name, symbol)
    return symbol


def check_message(text: str) -> str:
    """Checks a message of the packages, in which `...` stands for inserted text."""
    if not has_message(text):
        raise SymbolError(f"no code says {text!r}")
    return text


class CheckedRole(SphinxRole):
    """A role that checks its text and shows it as code."""

    def __init__(self, check: Check) -> None:
        self._check = check

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Returns the text as code. A text that the check rejects is an error of the build."""
        try:
            shown = self._check(self.text)
        except SymbolError as error:
            message = self.inliner.reporter.error(f"{self.name}: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [nodes.literal(self.rawtext, shown, classes=[self.name])], []


CHECKS: dict[str, Check] = {
    "path": check_path,
    "test": check_test,
    "session": check_session,
    "symbol": check_symbol,
    "message": check_message,
}
ROLES = {name: CheckedRole(check) for name, check in CHECKS.items()}
