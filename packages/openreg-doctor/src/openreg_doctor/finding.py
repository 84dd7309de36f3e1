# SPDX-License-Identifier: BSD-3-Clause
"""The results of checks: findings, and a section for those of each check."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

# ok:      without fault
# note:    worth knowing, but no fault
# unseen:  could not be checked, because no call from Python shows it or because a requirement of the call is missing
# warning: a lesser fault, most often a missing part that not every backend has
# problem: something does not work; the exit status is 1
Status = Literal["ok", "note", "unseen", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One result of a check. A fault keeps its name, ``check``, in every version of the JSON report."""

    check: str  # the name, such as "module.synchronize"
    status: Status
    what: str  # the observed fact
    costs: str = ""  # what does not work because of it
    fix: str = ""  # what to do about it
    chapter: str = ""  # of a missing part: the page of openreg's guide about it

    @property
    def is_missing_part(self) -> bool:
        """Returns True if the finding is a missing part that not every backend has."""
        return self.status == "warning" and bool(self.chapter)


LAST = 1000  # the position of a section that has none, behind the doctor's own


@dataclass(frozen=True)
class Section:
    """The findings of one check."""

    title: str
    findings: tuple[Finding, ...]
    position: int = LAST  # in the report; the doctor's own checks have 10 to 100


def matches(finding: Finding, patterns: tuple[str, ...]) -> bool:
    """Returns True if a pattern such as ``module.*`` matches the finding's name."""
    return any(fnmatchcase(finding.check, pattern) for pattern in patterns)
