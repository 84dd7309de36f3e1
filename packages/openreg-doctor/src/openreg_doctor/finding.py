# SPDX-License-Identifier: BSD-3-Clause
"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

# ok:      as it should be
# note:    worth knowing; nothing is wrong
# unseen:  nothing that Python can call tells
# warning: a part is missing that not every backend has
# problem: something does not work; the exit status is 1
Status = Literal["ok", "note", "unseen", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One result. ``check`` names it: the same fault has the same name in every version of this schema."""

    check: str
    status: Status
    what: str
    costs: str = ""  # what does not work because of it
    fix: str = ""  # what to do about it
    chapter: str = ""  # of a part that a backend does not have: the page of openreg's guide that is about it

    @property
    def is_missing_part(self) -> bool:
        """Whether it tells of a part that not every backend has."""
        return self.status == "warning" and bool(self.chapter)


LAST = 1000


@dataclass(frozen=True)
class Section:
    """The findings of one check."""

    title: str
    findings: tuple[Finding, ...]
    position: int = LAST  # in the report; the doctor's own checks stand from 10 to 100


def matches(finding: Finding, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern such as ``module.*`` names the finding."""
    return any(fnmatchcase(finding.check, pattern) for pattern in patterns)
