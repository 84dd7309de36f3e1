# SPDX-License-Identifier: BSD-3-Clause
"""Runs the examples of one part of a page, in order and in one namespace.

A comment line `% new process` divides a page into parts, numbered from 0; settings for the part may follow a colon.

A `python` block runs; a `text` block directly after it is what it prints, or the error that ends it. A `console` block
runs line by line, except for what shell.py checks in other ways. In a `text` block `...` stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shell import NEW_PROCESS, check_console, check_variable
from sybil import Document, Example, Region, Sybil
from sybil.evaluators.doctest import DocTestEvaluator
from sybil.parsers.abstract import DocTestStringParser
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

from tools.markers import ADDITION, EXCERPT

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
# What a page may hold besides directives, excerpts, which tests/pages/test_excerpts.py compares with their files, and
# what `nox -s recipe` adds to a package.
LANGUAGES = {"python", "console", "text"}


class PageError(AssertionError):
    """An example that does not do what the page says."""


@dataclass
class Printed:
    """What the last block printed, and how it ended, until a page shows it."""

    text: str = ""
    error: str = ""
    end: int = -1


PART = re.compile(rf"(?m)^% {NEW_PROCESS.pattern}$")


@dataclass(frozen=True)
class Part:
    """A stretch of a page that runs in a process of its own, with these settings."""

    start: int
    end: int
    settings: dict[str, str]


def parts_of(text: str) -> list[Part]:
    """The parts of a page."""
    marks = list(PART.finditer(text))
    starts = [0, *(mark.start() for mark in marks)]
    ends = [*starts[1:], len(text)]
    settings = ["", *(mark.group(1) or "" for mark in marks)]
    return [
        Part(start, end, dict(item.split("=", 1) for item in words.split()))
        for start, end, words in zip(starts, ends, settings, strict=True)
    ]


def shown_output(source: str) -> str:
    """Output in the form in which it is compared: without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in source.strip("\n").splitlines())


def check_output(want: str, got: str) -> None:
    """Raises PageError unless `got` is `want`, where `...` in `want` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown_output(want).split("..."))
    if not re.fullmatch(pattern, shown_output(got), re.DOTALL):
        raise PageError(f"the page says\n{want}\nbut this came out\n{got}")


class PageRunner:
    """The state that passes from one block of a page to the next."""

    def __init__(self) -> None:
        self._last = Printed()
        self._doctests = DocTestStringParser(DocTestEvaluator(OPTIONS))

    def parse(self, document: Document) -> Iterator[Region]:
        """The blocks of a page, each with what is done about it."""
        lexer = FencedCodeBlockLexer(language=r"[^\s`{]*", mapping={"language": "language", "source": "source"})
        shown = [match.span() for kind in (EXCERPT, ADDITION) for match in kind.finditer(document.text)]
        for region in lexer(document):
            if any(start < region.start < end for start, end in shown):
                continue
            language = region.lexemes["language"]
            source = region.lexemes["source"]
            if language not in LANGUAGES:
                place = f"{document.path}, {document.line_column(region.start)}"
                raise PageError(f"{place}: a block of {language or 'no language'}: show it as an excerpt")
            if language == "python" and source.startswith(">>>"):
                for inner in self._doctests(source, document.path):
                    inner.adjust(region, source)
                    yield inner
                continue
            region.parsed = source
            region.evaluator = {"python": self.python, "console": self.console, "text": self.text}[language]
            yield region

    def python(self, example: Example) -> None:
        """Runs a block; an error is kept for the block of text that has to follow."""
        self.nothing_left()
        printed = io.StringIO()
        code = "\n" * (example.line + example.parsed.line_offset) + example.parsed
        error = ""
        example.namespace.setdefault("__name__", "__main__")  # as in a program
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(code, example.path, "exec", dont_inherit=True), example.namespace)
            except Exception as raised:
                error = "".join(traceback.format_exception_only(raised))
                sys.stderr.write(traceback.format_exc())
        self._last = Printed(printed.getvalue(), error, example.region.end)

    def console(self, example: Example) -> None:
        """Runs or checks each line of a block."""
        self.nothing_left()
        self._last = Printed(check_console(example.parsed, Path(example.path)), "", example.region.end)

    def text(self, example: Example) -> None:
        """Compares with what the block directly before printed; other text is free."""
        between = example.document.text[self._last.end : example.region.start]
        if self._last.end >= 0 and not between.strip():
            want, last = str(example.parsed), self._last
            self._last = Printed()
            check_output(want, last.text + last.error)
        else:
            self.nothing_left()

    def nothing_left(self) -> None:
        """Raises PageError if an error was not expected."""
        error, self._last = self._last.error, Printed()
        if error:
            raise PageError(f"a block ended with {error}")


def run(path: Path, number: int) -> int:
    """Runs a part of a page; gives the number of its examples."""
    runner = PageRunner()
    document = Sybil([runner.parse]).parse(path)
    part = parts_of(document.text)[number]
    for name in part.settings:
        check_variable(name)
    examples = [example for example in document.examples() if part.start <= example.region.start < part.end]
    for example in examples:
        example.evaluate()
    runner.nothing_left()
    return len(examples)
