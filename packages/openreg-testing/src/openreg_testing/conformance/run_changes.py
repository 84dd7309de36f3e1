# SPDX-License-Identifier: BSD-3-Clause
"""Compares a run with an earlier one, from the scorecard that the earlier run wrote to a file (option --json)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .card import SCHEMA, Card


class ComparisonError(Exception):
    """An error for a file that is no scorecard of the kit."""


@dataclass(frozen=True)
class StatusChange:
    """A test whose status differs between two runs."""

    name: str
    before: str  # the status in the earlier run; "" if the test was not run
    after: str  # the status in this run; "" if the test was not run

    def describe(self) -> str:
        """Returns the change as one line of text."""
        return f"{self.name}: {self.before or 'not run'} -> {self.after or 'not run'}"


def read(path: Path) -> dict[str, Any]:
    """Returns the scorecard in a file. Raises ComparisonError if it cannot be read or is no scorecard."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ComparisonError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ComparisonError(f"{path} is no scorecard of this kit; pass a file that --json wrote ({SCHEMA})")
    return data


def changes(old: dict[str, Any], card: Card) -> list[StatusChange]:
    """Returns the tests whose status changed: first new failures, then tests that failed before, then the others."""
    before = {test["name"]: test["status"] for test in old["tests"]}
    after = {result.name: result.status for result in card.all_results()}
    found = [
        StatusChange(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys([*after, *before])
        if before.get(name, "") != after.get(name, "")
    ]
    return sorted(found, key=lambda change: (change.after != "failed", change.before != "failed"))
