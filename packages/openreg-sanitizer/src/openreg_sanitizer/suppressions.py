# SPDX-License-Identifier: BSD-3-Clause
"""Reads which findings a program accepts: from comments on its lines, and from files of patterns.

A comment on a line in the stack of one of the two accesses suppresses all kinds of findings, or those in brackets. So a
library can accept what its callers do through one of its lines:

    y.mul_(2)  # openreg-sanitizer: ignore
    y.mul_(2)  # openreg-sanitizer: ignore[race, reuse]

A file has one pattern on each line: a kind or ``*``, and the end of a file's path, with or without a line or a
function. Text after ``#`` is a comment.

    race train.py:12       # this line
    reuse  loader.py:next  # this function
    *  vendor/*.py         # these files
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from pathlib import Path

from openreg_sanitizer.finding import KINDS, Finding, Frame

_COMMENT = re.compile(r"#\s*openreg-sanitizer:\s*ignore(?:\[([^]]*)\])?")


class SuppressionError(ValueError):
    """An error for a file of suppressions that cannot be read, with file, line and remedy in the message."""


@dataclass
class Suppression:
    """A line of a file of suppressions, with the number of findings that it has suppressed."""

    origin: str  # file and line of the suppression
    kind: str
    path: str  # a pattern of fnmatch
    place: str  # line number or function; empty for the whole file
    used: int = 0

    def matches(self, finding: Finding) -> bool:
        """Returns True if the finding is of this kind and has a line in this place."""
        if self.kind not in ("*", finding.kind):
            return False
        return any(self._is_at(frame) for frame in finding.frames if frame)

    def _is_at(self, frame: Frame) -> bool:
        path = frame.file.replace("\\", "/")
        if not fnmatch.fnmatch(path, self.path) and not fnmatch.fnmatch(path, f"*/{self.path}"):
            return False
        return not self.place or self.place in (str(frame.line), frame.function)


def read(path: Path) -> list[Suppression]:
    """Reads a file of suppressions. Raises :class:`SuppressionError` if it cannot be read or has an invalid line."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SuppressionError(
            f"{path}: the file of suppressions cannot be read: {reason}; name a text file with one suppression on "
            "each line, such as: race train.py:12"
        ) from error
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in ("*", *KINDS):
            raise SuppressionError(
                f"{path}:{number}: {line.strip()!r} is no suppression; write a kind ({', '.join(KINDS)} or *) and the "
                "end of a path with an optional line or function, such as: race train.py:12"
            )
        file, _, place = words[1].partition(":")
        found.append(Suppression(f"{path}:{number}", words[0], file, place))
    return found


def is_commented(finding: Finding) -> bool:
    """Returns True if a comment on a line in the stack of one of the accesses suppresses the finding."""
    for frame in (frame for access in (finding.first, finding.second) if access for frame in access.stack):
        comment = _COMMENT.search(frame.source)
        if comment and (comment[1] is None or finding.kind in re.split(r"[\s,]+", comment[1].strip())):
            return True
    return False
