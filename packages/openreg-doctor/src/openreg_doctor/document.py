# SPDX-License-Identifier: BSD-3-Clause
"""The report as data, and as JSON.

The JSON document, of schema 1, is an object with

- ``schema``: 1; a change that takes a name away or gives it another meaning raises it
- ``device``: the device's name
- ``healthy``: whether there is no problem, ignored ones apart; the exit status says the same
- ``counts``: number of findings by status: ``ok``, ``note``, ``unseen``, ``warning``, ``problem``, and ``ignored``
- ``findings``: a list of objects with the strings ``check`` (the name of what was checked), ``section``, ``status``
  (one of the five), ``what``, ``costs``, ``fix`` and ``chapter`` (empty where there is none), and the bool ``ignored``
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
class Report:
    """All that the doctor says."""

    device: str
    sections: list[Section]
    explanation: Explanation | None
    ignore: tuple[str, ...]  # patterns of checks whose problems do not count

    @property
    def findings(self) -> list[tuple[Section, Finding]]:
        """Every finding with its section."""
        return [(section, finding) for section in self.sections for finding in section.findings]

    def ignores(self, finding: Finding) -> bool:
        """Whether it is a problem that does not count."""
        return finding.status == "problem" and matches(finding, self.ignore)

    @property
    def problems(self) -> list[Finding]:
        """The problems that count."""
        return [item for _, item in self.findings if item.status == "problem" and not self.ignores(item)]


def render(report: Report) -> str:
    """The JSON document."""
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
