# SPDX-License-Identifier: BSD-3-Clause
"""Planted bugs: programs that are wrong with ``fixed=False`` and right with ``fixed=True``.

The line of the first access ends with the comment "first", that of the second with "second". A bug without a first
access (memory that nothing wrote) has no such line. The missing line belongs before the second access, or after the
first for ``record_stream()``, unless another line ends with "place". Where a public report describes the bug, the
decorator names it.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

BUGS = []


@dataclass(frozen=True)
class Bug:
    """A planted bug: what must be found, where, and the line that must be missing."""

    run: Callable[[bool], object]
    kind: str
    missing: str
    report: str
    file: str
    first: int | None
    second: int
    place: int | None

    @property
    def name(self):
        return self.run.__name__


def bug(kind, missing="", report=""):
    """Registers a planted bug."""

    def register(run):
        lines, start = inspect.getsourcelines(run)
        tagged = {}
        for number, line in enumerate(lines, start):
            for tag in line.rpartition("# ")[2].strip().split(", "):
                tagged[tag] = number
        file = inspect.getsourcefile(run)
        BUGS.append(Bug(run, kind, missing, report, file, tagged.get("first"), tagged["second"], tagged.get("place")))
        return run

    return register
