# SPDX-License-Identifier: BSD-3-Clause
"""What the files of a package say: the messages that they raise, and the texts that messages take from elsewhere."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

# Longer expressions are shown as `<...>`.
_LONGEST = 40
_INSERTED = re.compile(r"<[^<>]*>|%\w+")
_WORD = re.compile(r"[A-Za-z]{2,}")
_WORDS = re.compile(r"\w[,;:.)'`]* +['`(]?[A-Za-z]{2,}")


@dataclass(frozen=True)
class Message:
    """A text and its line. `kind` is the exception or warning; it is empty if the text is a part of other messages."""

    line: int
    kind: str
    text: str


@dataclass
class FileTexts:
    """All texts of a file.

    `used` are the functions, as `name()`, and the variables from which messages take texts. `sources` has the texts of
    each, and what these use in turn. `constants` are variables that are one text.
    """

    raised: list[Message] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    sources: dict[str, list[tuple[list[Message], set[str]]]] = field(default_factory=lambda: defaultdict(list))
    constants: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))

    def with_constants(self, message: Message) -> Message:
        """Returns the message with the values of constants. Of several with one name the last above it is meant."""

        def value(match: re.Match[str]) -> str:
            above = [text for line, text in self.constants[match[1]] if line <= message.line]
            return above[-1] if above else match[0]

        text = re.sub(r"<(\w+)>", value, message.text)
        return Message(message.line, message.kind, re.sub(r"<(\w+)>", value, text))


def placeholder(expression: str) -> str:
    """Returns how a message shows an expression whose value is inserted."""
    shown = " ".join(expression.split()).removeprefix("self.")
    return f"<{shown}>" if len(shown) <= _LONGEST else "<...>"


def says_something(message: Message) -> bool:
    """Returns True if a message has a word besides what is inserted, and a part of messages has two words or more."""
    return (_WORD if message.kind else _WORDS).search(_INSERTED.sub("", message.text)) is not None


def messages_of(files: dict[Path, FileTexts]) -> dict[Path, list[Message]]:
    """Returns the messages of a package by file, in the order of their lines, and the texts that are parts of them.

    A message takes texts from functions of all files, and from variables of its own file.
    """
    found = {path: set(file.raised) for path, file in files.items()}
    to_visit = {(path, name) for path, file in files.items() for name in file.used}
    visited: set[tuple[Path, str]] = set()
    while to_visit:
        user, name = to_visit.pop()
        visited.add((user, name))
        for path in files if name.endswith("()") else [user]:
            for texts, used in files[path].sources.get(name, []):
                found[path].update(texts)
                to_visit |= {(path, inner) for inner in used} - visited
    complete = {path: {files[path].with_constants(item) for item in items} for path, items in found.items()}
    said = {path: filter(says_something, items) for path, items in complete.items()}
    return {path: sorted(items, key=lambda item: (item.line, item.text)) for path, items in said.items()}
