# SPDX-License-Identifier: BSD-3-Clause
"""The directive `source`: code of this repository, by symbol or between two marks, never pasted."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.directives.code import container_wrapper
from sphinx.util.docutils import SphinxDirective

from guide.repository import ROOT, SPDX
from guide.symbols import SymbolError, find_symbol

LANGUAGES = {
    **dict.fromkeys((".cpp", ".h"), "cpp"),
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".cmake", ".in"), "cmake"),
    **dict.fromkeys((".yml", ".yaml"), "yaml"),
    ".toml": "toml",
    ".json": "json",
    ".sh": "bash",
    ".md": "markdown",
}


def language_of(path: Path) -> str:
    """What Pygments calls the language of a file."""
    if path.name == "CMakeLists.txt":
        return "cmake"
    return LANGUAGES.get(path.suffix, "text")


def excerpt(text: str, start_after: str | None, end_before: str | None) -> str:
    """The lines after the first that contains one text and before the next that contains another.

    Raises SymbolError if one of the two is not there.
    """
    lines = text.splitlines()
    if lines and SPDX in lines[0]:
        lines = lines[1:]
    if start_after is not None:
        lines = lines[_line_with(lines, start_after) + 1 :]
    if end_before is not None:
        lines = lines[: _line_with(lines, end_before)]
    return "\n".join(lines).strip("\n")


def _line_with(lines: list[str], mark: str) -> int:
    for number, line in enumerate(lines):
        if mark in line:
            return number
    raise SymbolError(f"no line contains {mark!r}")


class SourceDirective(SphinxDirective):
    """Shows part of a file, with the file's path as caption.

    The argument is the path from the repository's root. Options: `symbol`, or `start-after` and `end-before`, or none
    for the whole file without its licence line; `caption` instead of the path; `language`.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "symbol": directives.unchanged_required,
        "start-after": directives.unchanged_required,
        "end-before": directives.unchanged_required,
        "caption": directives.unchanged_required,
        "language": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """The block of code, or an error that names what is missing."""
        name = self.arguments[0].strip()
        path = ROOT / name
        if not path.is_file():
            raise self.error(f"source: no file {name}")
        self.env.note_dependency(str(path))
        start, end = self.options.get("start-after"), self.options.get("end-before")
        try:
            if "symbol" in self.options:
                if start is not None or end is not None:
                    raise SymbolError("symbol goes without start-after and end-before")
                code = find_symbol(path, self.options["symbol"])
            else:
                code = excerpt(path.read_text("utf-8"), start, end)
        except SymbolError as error:
            raise self.error(f"source: {name}: {error}") from error
        block = nodes.literal_block(code, code)
        block["language"] = self.options.get("language", language_of(path))
        self.set_source_info(block)
        wrapped: nodes.Node = container_wrapper(self, block, self.options.get("caption", f"`{name}`"))
        return [wrapped]
