# SPDX-License-Identifier: BSD-3-Clause
"""The Sphinx directive `failure`, which shows a program and the error or warning that it ends with.

The argument is the type of the error or warning, as Python prints it (`RuntimeError`, `torch.OutOfMemoryError`,
`UserWarning`). The content is the program, a line `---`, and the message. The message may be broken between any words,
and `...` in it stands for text that differs between runs. Options: `environment` (environment variables, `NAME=value
NAME=value`), `before` (a line of Python that another process runs first), `at` (the line of the program that raises),
`prints` (the output before the message), `path` (a folder in docs/tests to import from).

docs/tests/test_failures.py runs the programs of all pages and compares the messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

SEPARATOR = "---"
OPTIONS = {"environment", "before", "at", "prints", "path"}
_FENCE = re.compile(r"^(?P<fence>`{3,})\{failure\}[ ]*(?P<kind>[^\n]*)\n(?P<body>.*?)^(?P=fence)[ ]*$", re.M | re.S)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
# A pattern for what may follow a message: another exception of a chain, or the origin of a warning.
_ENDS = r"(?=$| The above exception was| During handling of| \(Triggered internally at)"


class FailureError(ValueError):
    """An error in the text of a `failure` directive."""


@dataclass(frozen=True)
class Failure:
    """The content of a directive: a program and its message. `title` is the heading above it."""

    title: str
    kind: str
    program: str
    message: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment variables that the program needs."""
        return dict(pair.split("=", 1) for pair in self.options.get("environment", "").split())

    def command(self) -> str:
        """Returns the shell command that starts the program."""
        return " ".join([self.options.get("environment", ""), "python program.py"]).strip()

    def is_said_in(self, errors: str) -> bool:
        """Returns True if the standard error of a process contains the whole message."""
        pattern = _as_pattern(f"{self.kind}: {self.message}")
        return re.search(r"(?:^| )" + pattern + _ENDS, " ".join(errors.split())) is not None

    def raising_line(self, errors: str, file: str) -> str:
        """Returns the line of the program in `file` that the last traceback names; empty if there is none."""
        numbers = re.findall(rf'File "{re.escape(file)}", line (\d+)', errors)
        lines = self.program.splitlines()
        return lines[int(numbers[-1]) - 1].strip() if numbers and int(numbers[-1]) <= len(lines) else ""


def _as_pattern(message: str) -> str:
    return ".*?".join(re.escape(" ".join(part.split())) for part in message.split("..."))


def make(title: str, kind: str, options: dict[str, str], content: str) -> Failure:
    """Returns the failure. Raises FailureError without a program or message, and for an option that does not exist."""
    program, separator, message = content.partition(f"\n{SEPARATOR}\n")
    if not separator or not program.strip() or not message.strip():
        raise FailureError(f"failure {kind} under {title!r}: write the program, a line {SEPARATOR}, and the message")
    if not kind:
        raise FailureError(f"failure under {title!r}: say which exception or warning it is")
    unknown = set(options) - OPTIONS
    if unknown:
        raise FailureError(f"failure under {title!r}: no option {', '.join(sorted(unknown))}")
    return Failure(title, kind, program.strip("\n"), message.strip(), options)


def failures_of(page: str) -> Iterator[Failure]:
    """Yields the failures of a page in Markdown."""
    for match in _FENCE.finditer(page):
        headings = [item.group(1) for item in _HEADING.finditer(page, 0, match.start())]
        lines = match["body"].splitlines()
        options: dict[str, str] = {}
        while lines and lines[0].startswith(":"):
            name, _, value = lines.pop(0)[1:].partition(":")
            options[name] = value.strip()
        yield make(headings[-1] if headings else "", match["kind"].strip(), options, "\n".join(lines))


class FailureDirective(SphinxDirective):
    """Shows the program, the command that starts it if it needs environment variables, and the message."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = dict.fromkeys(OPTIONS, directives.unchanged)

    def run(self) -> list[nodes.Node]:
        """Returns the blocks. An invalid directive is an error of the build."""
        try:
            failure = make("", self.arguments[0], self.options, "\n".join(self.content))
        except FailureError as error:
            raise self.error(str(error)) from error
        shown: list[nodes.Node] = []
        if "before" in self.options:
            shown += self.parse_text_to_nodes("Another process has done this:")
            shown.append(self._block(self.options["before"], "python"))
        shown.append(self._block(failure.program, "python"))
        if failure.environment:
            shown.append(self._block(failure.command(), "bash"))
        # The message is one line, which the style sheet breaks at the end of the screen.
        message = " ".join(failure.message.split())
        shown.append(self._block(f"{failure.kind}: {message}", "text", "failure-message"))
        if "at" in self.options:
            shown += self.parse_text_to_nodes(f"It is raised by `{self.options['at']}`.")
        return shown

    def _block(self, text: str, language: str, *classes: str) -> nodes.Node:
        block = nodes.literal_block(text, text, classes=list(classes))
        block["language"] = language
        self.set_source_info(block)
        return block


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the directive with Sphinx."""
    app.add_directive("failure", FailureDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
