# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's report, as data and as a JSON document.

The JSON document of schema 1 is an object with

- ``schema``: 1; it is raised by a change that removes a name or changes its meaning
- ``device``: the device's name
- ``healthy``: true if there is no problem except ignored ones; the exit status is then 0
- ``counts``: number of findings by status: ``ok``, ``note``, ``unseen`` (could not be checked), ``warning``,
  ``problem``, and ``ignored``
- ``findings``: a list of objects. They have the strings ``check`` (the finding's name), ``section``, ``status`` (one of
  these except ``ignored``), ``what`` (the observed fact), ``costs`` (what does not work because of it), ``fix`` (what
  to do about it) and ``chapter`` (of a missing part: the page of openreg's guide about it), and the bool ``ignored``.
  Each of ``costs``, ``fix`` and ``chapter`` may be empty
- ``operator``: null, or with ``--op`` an object with the strings ``name`` and ``schema`` and the list ``facts`` of
  objects with the strings ``aspect`` and ``text``
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from .explanation import Explanation
from .finding import Finding, Section, matches

SCHEMA = 1
_STATUSES = ("ok", "note", "unseen", "warning", "problem")


@dataclass(frozen=True)
class DoctorReport:
    """All findings of the doctor, and the explanation of an operator if the user named one."""

    device: str
    sections: list[Section]
    explanation: Explanation | None
    ignore: tuple[str, ...]  # patterns of checks whose problems do not count

    @property
    def findings(self) -> list[tuple[Section, Finding]]:
        """Returns every finding with its section."""
        return [(section, finding) for section in self.sections for finding in section.findings]

    def ignores(self, finding: Finding) -> bool:
        """Returns True if the finding is a problem that does not count."""
        return finding.status == "problem" and matches(finding, self.ignore)

    @property
    def problems(self) -> list[Finding]:
        """Returns the problems that count."""
        return [item for _, item in self.findings if item.status == "problem" and not self.ignores(item)]


def render(report: DoctorReport) -> str:
    """Returns the JSON document."""
    counts = Counter("ignored" if report.ignores(item) else item.status for _, item in report.findings)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "device": report.device,
        "healthy": not report.problems,
        "counts": {status: counts[status] for status in (*_STATUSES, "ignored")},
        "findings": [
            {**asdict(item), "section": section.title, "ignored": report.ignores(item)}
            for section, item in report.findings
        ],
        "operator": asdict(report.explanation) if report.explanation is not None else None,
    }
    return json.dumps(document, indent=2)
