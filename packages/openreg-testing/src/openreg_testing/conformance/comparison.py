# SPDX-License-Identifier: BSD-3-Clause
"""What changed since an earlier run, whose scorecard --json has written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .card import SCHEMA, Card


class ComparisonError(Exception):
    """The file is no scorecard of the kit."""


@dataclass(frozen=True)
class Change:
    """A test whose result is another one than before."""

    name: str
    before: str  # "" if it was not run
    after: str

    def describe(self) -> str:
        """In a line."""
        return f"{self.name}: {self.before or 'not run'} -> {self.after or 'not run'}"


def read(path: Path) -> dict[str, Any]:
    """The scorecard of a file. Raises ComparisonError."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ComparisonError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ComparisonError(f"{path}: is no scorecard of this kit; it has to be a file that --json wrote ({SCHEMA})")
    return data


def changes(old: dict[str, Any], card: Card) -> list[Change]:
    """Tests with another result: first those that fail now, then those that do not any more, then the others."""
    before = {test["name"]: test["status"] for test in old["tests"]}
    after = {result.name: result.status for result in card.all_results()}
    found = [
        Change(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys([*after, *before])
        if before.get(name, "") != after.get(name, "")
    ]
    return sorted(found, key=lambda change: (change.after != "failed", change.before != "failed"))
