# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the guide."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
NOT_PAGES = {"tests", "_extensions", "_static"}


def pages() -> list[Path]:
    """Every Markdown file that becomes a page."""
    return [
        path
        for path in sorted(DOCS.rglob("*.md"))
        if not NOT_PAGES.intersection(path.relative_to(DOCS).parts) and path != DOCS / "README.md"
    ]


def name_of(path: Path) -> str:
    """A page's path in docs/, without the ending."""
    return path.relative_to(DOCS).with_suffix("").as_posix()
