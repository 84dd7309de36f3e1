# SPDX-License-Identifier: BSD-3-Clause
"""Lists the pages of the guide and the other documents."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
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


def documents() -> list[Path]:
    """Every Markdown file of the repository, with two exceptions.

    The lists of changes describe earlier versions. The README of a generated backend describes that project, and tests
    of openreg-doctor compare it with the project.
    """
    found = [*ROOT.glob("*.md"), ROOT / "tools" / "README.md", DOCS / "README.md", *pages()]
    for part in ("benchmarks", "examples", "packages", "templates"):
        paths = (path for path in (ROOT / part).rglob("*.md") if "build" not in path.relative_to(ROOT).parts)
        found += [path for path in paths if path.name != "CHANGELOG.md"]
    return sorted(path for path in found if path.parent != ROOT / "examples" / "tutorial" / "backend")


def name_in_repository(path: Path) -> str:
    """A document's path from the root."""
    return path.relative_to(ROOT).as_posix()
