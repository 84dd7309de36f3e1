# SPDX-License-Identifier: BSD-3-Clause
"""Formats docs/trace/files.json, the record of the source files that one operator executes, for a page of the guide.

tools/pages/trace.py writes the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

RECORD = Path("docs", "trace", "files.json")
# The comment after a file's license line, and the comment above a class.
_BEGINNING = re.compile(r"\A(?:// SPDX[^\n]*\n(?=//)|/\* SPDX[^\n]*\n/\*\n)(?P<comment>(?:(?://| \*(?!/))[^\n]*\n)+)")
_CLASS = re.compile(r"(?P<comment>(?:^//[^\n]*\n)+)(?:template[^\n]*\n)?class ", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """The files of the repository that one thread executed up to an event, with the number of instructions in each."""

    thread: str
    until: str
    files: Mapping[str, int]


def read(root: Path) -> list[Part]:
    """Returns the record of a repository."""
    return [Part(**item) for item in json.loads((root / RECORD).read_text("utf-8"))]


def purpose(path: Path) -> str:
    """Returns the first sentence of the comment at the top of a file, or else above the first class of its header.

    The header is that of the same name. The result is empty without such a comment. Comments about real hardware
    (REAL HW) do not count.
    """
    public = sorted((path.parents[2] / "include").rglob(f"{path.stem}.h"))
    for candidate in (path, path.with_suffix(".h"), *public):
        text = candidate.read_text("utf-8") if candidate.is_file() else ""
        for found in (_BEGINNING.match(text), _CLASS.search(text) if candidate.suffix == ".h" else None):
            if found is not None and "REAL HW" not in found["comment"]:
                lines = [re.sub(r"^(//| \*) ?", "", line) for line in found["comment"].splitlines()]
                paragraph = " ".join("\n".join(lines).strip("\n").split("\n\n")[0].split())
                return re.split(r"(?<=[.?!])\s", paragraph)[0]
    return ""


def table(part: Part, root: Path, link: Callable[[str], str]) -> str:
    """Returns a Markdown table of the files of one part: path, purpose, number of instructions.

    Raises ValueError for a file that does not exist any more.
    """
    lines = ["| file | what it is | instructions |", "|---|---|---:|"]
    for name in sorted(part.files):
        if not (root / name).is_file():
            raise ValueError(f"{name} is gone, and {RECORD.as_posix()} names it: run `nox -s trace`")
        what = purpose(root / name).replace("|", r"\|")
        lines.append(f"| {link(name)} | {what} | {part.files[name]} |")
    return "\n".join(lines) + "\n"


def summary(parts: list[Part]) -> str:
    """Returns a Markdown table of the number of executed files, by folder and in total.

    The last column counts a source and its header as one.
    """
    names = sorted({name for part in parts for name in part.files})
    rows: dict[str, list[str]] = {}
    for name in names:
        rows.setdefault(f"`{Path(name).parent.as_posix()}`", []).append(name)
    lines = ["| folder | sources | headers | a source and its header as one |", "|---|---:|---:|---:|"]
    for title, chosen in [*rows.items(), ("together", names)]:
        headers = sum(name.endswith(".h") for name in chosen)
        things = len({(Path(name).parts[1], Path(name).stem) for name in chosen})  # parts[1]: the package
        lines.append(f"| {title} | {len(chosen) - headers} | {headers} | {things} |")
    return "\n".join(lines) + "\n"
