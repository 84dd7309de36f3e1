# SPDX-License-Identifier: BSD-3-Clause
"""What docs/trace/files.json says of the way of one operator, as a page shows it; tools/trace.py writes that file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

RECORD = Path("docs", "trace", "files.json")
# The comment after a file's license line.
_BEGINNING = re.compile(r"\A(?:// SPDX[^\n]*\n(?=//)|/\* SPDX[^\n]*\n/\*\n)(?P<comment>(?:(?://| \*(?!/))[^\n]*\n)+)")
_CLASS = re.compile(r"(?P<comment>(?:^//[^\n]*\n)+)(?:template[^\n]*\n)?class ", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """What one thread passed up to an event: files of the repository, the number of instructions in each."""

    thread: str
    until: str
    files: Mapping[str, int]


def read(root: Path) -> list[Part]:
    """The record of a repository."""
    return [Part(**item) for item in json.loads((root / RECORD).read_text("utf-8"))]


def purpose(path: Path) -> str:
    """The first sentence of what a file, or else the header of its name, says of itself or of its first class.

    Empty if they say nothing; what real hardware would do is not said of the file.
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
    """The files of one part, package by package: where each stands, what it is for, its instructions.

    Raises ValueError for a file that is not there any more.
    """
    lines = ["| file | what it is | instructions |", "|---|---|---:|"]
    for name in sorted(part.files):
        if not (root / name).is_file():
            raise ValueError(f"{name} is gone, and {RECORD.as_posix()} names it: run `nox -s trace`")
        what = purpose(root / name).replace("|", r"\|")
        lines.append(f"| {link(name)} | {what} | {part.files[name]} |")
    return "\n".join(lines) + "\n"


def summary(parts: list[Part]) -> str:
    """How many files all parts pass, by folder and together, and how many where a source and its header are one."""
    names = sorted({name for part in parts for name in part.files})
    rows: dict[str, list[str]] = {}
    for name in names:
        rows.setdefault(Path(name).parent.as_posix(), []).append(name)
    lines = ["| folder | sources | headers | a source and its header as one |", "|---|---:|---:|---:|"]
    for title, chosen in [*rows.items(), ("together", names)]:
        headers = sum(name.endswith(".h") for name in chosen)
        things = len({(Path(name).parts[1], Path(name).stem) for name in chosen})  # parts[1]: the package
        lines.append(f"| {title} | {len(chosen) - headers} | {headers} | {things} |")
    return "\n".join(lines) + "\n"
