# SPDX-License-Identifier: BSD-3-Clause
"""Updates the excerpts in Markdown files from the source files that they quote: `nox -s excerpts`.

usage: python -m tools.pages.excerpts [--check --diff]

A line of a document names what it quotes, and cog (https://cog.readthedocs.io) writes the block between that line and
the end marker:

    <!--[[[cog source("packages/openreg-runtime/csrc/pytorch/guard.cpp", "exchangeDevice")]]]-->
    <!--[[[end]]]-->

Such a line can call `Page.source`, `Page.difference`, `Page.passed` and `Page.account`. tests/pages/test_excerpts.py
checks that the blocks are current: with --check, cog changes nothing, and fails if a block differs.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogapp import Cog

from tools.checks.repo_checks import SPDX, files
from tools.markers import BEGIN, BEGIN_ENDS, END
from tools.packages import ROOT
from tools.pages import account, passed_files
from tools.pages.symbols import SymbolError, find_symbol

# The most lines of an excerpt, so that a reader can grasp it. Pages of the tutorial, in the folder COMPLETE, have no
# limit, because they contain all code of their step.
LONGEST = 30
COMPLETE = "docs/tutorial"
# The names that forges and Pygments have for the language of a file, by its suffix.
LANGUAGES = {
    ".cpp": "cpp",
    ".h": "cpp",
    ".c": "c",
    ".py": "python",
    ".pyi": "python",
    ".cmake": "cmake",
    ".in": "cmake",
}
LANGUAGES |= {".yml": "yaml", ".yaml": "yaml", ".toml": "toml", ".json": "json", ".sh": "bash", ".md": "markdown"}


def part_of(text: str, first: str | None, last: str | None) -> str:
    """Returns the lines from the first that contains `first` to the next that contains `last`, without indentation.

    Without `first` the lines begin after the license line; without `last` they end with the text. Raises SymbolError if
    no line contains one of the two.
    """
    lines = text.splitlines()
    if lines and SPDX in lines[0]:
        lines = lines[1:]
    if first is not None:
        lines = lines[_line_with(lines, first) :]
    if last is not None:
        lines = lines[: _line_with(lines, last) + 1]
    return textwrap.dedent("\n".join(lines).strip("\n"))


def _line_with(lines: list[str], mark: str) -> int:
    found = [number for number, line in enumerate(lines) if mark in line]
    if not found:
        raise SymbolError(f"no line contains {mark!r}")
    return found[0]


def fenced(code: str, language: str) -> str:
    """Returns a Markdown block of code, with a fence that is longer than any in the code."""
    longest = max(map(len, re.findall(r"(?m)^ *(`{3,})", code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{code}\n{fence}\n"


@dataclass(frozen=True)
class Page:
    """A Markdown file. Its methods return the excerpts of the repository under `root` that it can show."""

    path: Path
    root: Path = ROOT

    def source(self, name: str, symbol: str | None = None, *, first: str | None = None, last: str | None = None) -> str:
        """Returns a symbol of a file, the lines from one text to another, or the whole file without its license line.

        tools/pages/symbols.py describes how a symbol is named. Raises SymbolError if the excerpt does not exist or is
        too long.
        """
        path = self._file(name)
        if symbol is not None and (first is not None or last is not None):
            raise SymbolError("a symbol goes without `first` and `last`")
        is_part = (symbol, first, last) != (None, None, None)
        code = part_of(path.read_text("utf-8"), first, last) if symbol is None else find_symbol(path, symbol)
        self._refuse_too_much(code)
        title = self._link(name)
        language = "cmake" if path.name == "CMakeLists.txt" else LANGUAGES.get(path.suffix, "text")
        return f"{f'From {title}' if is_part else title}:\n\n{fenced(code, language)}"

    def difference(self, new: str, old: str) -> str:
        """Returns the diff from `old` to `new`, without license lines. Raises SymbolError if they are the same."""
        before, after = (part_of(self._file(name).read_text("utf-8"), None, None).splitlines() for name in (old, new))
        lines = [line.rstrip() for line in difflib.unified_diff(before, after, lineterm="")][2:]
        if not lines:
            raise SymbolError(f"{old} and {new} are the same")
        code = "\n".join(lines)
        self._refuse_too_much(code)
        return f"{self._link(new)}, changed:\n\n{fenced(code, 'diff')}"

    def passed(self, thread: str | None = None, until: str | None = None) -> str:
        """Returns the files that `x + y` executes on a thread up to an event, or the number of all without a thread.

        The data are those of tools/pages/passed_files.py.
        """
        parts = passed_files.read(self.root)
        if thread is None:
            return passed_files.summary(parts)
        chosen = [part for part in parts if (part.thread, part.until) == (thread, until)]
        if len(chosen) != 1:
            raise SymbolError(f"{passed_files.RECORD.as_posix()} has {[(part.thread, part.until) for part in parts]}")
        return passed_files.table(chosen[0], self.root, self._link)

    def account(self) -> str:
        """Returns the instructions of one small operator by library, beside the CPU's (tools/pages/account.py)."""
        return account.table(self.root)

    def _file(self, name: str) -> Path:
        path = self.root / name
        if not path.is_file():
            raise SymbolError(f"no file {name}")
        return path

    def _link(self, name: str) -> str:
        return f"[`{name}`]({Path(os.path.relpath(self.root / name, self.path.parent)).as_posix()})"

    def _refuse_too_much(self, code: str) -> None:
        lines = len(code.splitlines())
        if lines > LONGEST and self.root / COMPLETE not in self.path.parents:
            raise SymbolError(f"{lines} lines, and a page shows at most {LONGEST}: name a part, or write a link")


def calls(cog: Any) -> tuple[Callable[..., None], ...]:
    """Returns `source`, `difference`, `passed` and `account` for the lines of the document that cog processes."""
    page = Page(Path(cog.inFile).resolve())

    def writer(show: Callable[..., str]) -> Callable[..., None]:
        return lambda *names, **marks: cog.out(show(*names, **marks))

    return writer(page.source), writer(page.difference), writer(page.passed), writer(page.account)


OPTIONS = (
    *("-I", str(ROOT), "--markers", f"{BEGIN} {BEGIN_ENDS} {END}", "--verbosity", "1"),
    *("-p", "from tools.pages.excerpts import calls; source, difference, passed, account = calls(cog)"),
    *("--check-fail-msg", "to write what the files say today, run nox -s excerpts"),
)


def main(*arguments: str) -> int:
    """Runs cog on all documents, and returns its exit status. Without arguments, cog writes the documents."""
    documents = [os.path.relpath(path) for path in files(ROOT, {".md"})]
    status: int = Cog().main(["cog", *OPTIONS, *(arguments or ["-r"]), *documents])
    return status


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
