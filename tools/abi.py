# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the ABI number of the runtime, kAbiVersion, changes with the public headers of the runtime.

usage: python -m tools.abi      records the headers, after kAbiVersion was raised

A package that was compiled against other headers than those of the installed runtime must not be loaded. The runtime
recognizes such a package by the number, so the number has to change with the headers (docs/releasing/packaging.md). A
JSON file, the record, contains the last number and a hash of the code of each header. Comments and layout do not affect
the hash, because they change nothing that is compiled.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from tools.packages import DRIVER, ROOT, refuse

RUNTIME = Path("packages", "openreg-runtime")
INCLUDE = RUNTIME / "include"
VERSION = INCLUDE / "openreg" / "runtime" / "version.h"
RECORD = RUNTIME / "docs" / "abi.json"
COMMAND = "python -m tools.abi"

SOURCES = (".h", ".c", ".cpp", ".md")
INCLUDED = re.compile(r'#include ["<](openreg[\w/]*\.h)[">]')
NUMBER = re.compile(r"\bkAbiVersion = (\d+);")
# The tokens of a header. Literals are matched as a whole, because they may contain what looks like a comment. Ends of
# lines are matched, because they end preprocessor directives.
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|(?P<literal>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<line>\n)|(?P<code>\w+|[^\w\s])",
    re.DOTALL,
)


def digest(text: str) -> str:
    """Returns a hash of the code of a header, which does not depend on its comments and layout."""
    lines: list[list[str]] = [[]]
    for token in TOKEN.finditer(text):
        if token["code"] == "#" or (token["line"] and lines[-1][:1] == ["#"]):
            lines.append([])
        if token["code"] or token["literal"]:
            lines[-1].append(token.group())
    return hashlib.sha256(json.dumps([line for line in lines if line]).encode()).hexdigest()


def public_headers(root: Path) -> dict[str, Path]:
    """Returns the headers that the wheel installs, by their names in #include."""
    folders = [root / INCLUDE, root / DRIVER / "include"]
    return {path.relative_to(folder).as_posix(): path for folder in folders for path in sorted(folder.rglob("*.h"))}


def state(root: Path) -> tuple[int, dict[str, str]]:
    """Returns the number in version.h, and the hash of each public header by its name in #include."""
    found = NUMBER.search((root / VERSION).read_text("utf-8"))
    if found is None:
        refuse(f"{VERSION.as_posix()} does not define kAbiVersion")
    digests = {name: digest(path.read_text("utf-8")) for name, path in public_headers(root).items()}
    return int(found[1]), digests


def recorded(root: Path) -> tuple[int, dict[str, str]]:
    """Returns the number and the hashes in the record; 0 and no hashes if there is no record."""
    path = root / RECORD
    empty: dict[str, Any] = {"version": 0, "headers": {}}
    record = json.loads(path.read_text("utf-8")) if path.is_file() else empty
    return record["version"], record["headers"]


def headers_have_their_number(root: Path) -> list[str]:
    """Checks that kAbiVersion is raised when a public header changes, and that the record is current.

    Returns one line per violation.
    """
    if not (root / VERSION).is_file():
        return []
    number, now = state(root)
    last, then = recorded(root)
    changed = sorted(name for name in {*now, *then} if now.get(name) != then.get(name))
    raised = f"raise kAbiVersion to {last + 1}, then {COMMAND}"
    if number == last:
        return [f"{name} of {RUNTIME.as_posix()} changed: {raised}" for name in changed]
    if number < last:
        return [f"{VERSION.as_posix()}: the ABI {last} is recorded, and kAbiVersion is {number}: {raised}"]
    return [f"{RECORD.as_posix()} is of ABI {last}, the headers are of ABI {number}: {COMMAND}"]


def headers_are_needed(root: Path) -> list[str]:
    """Checks that a public header is included by another one, a package, a test or an example, or shown by a page.

    Returns one line per violation.
    """
    headers = public_headers(root)
    inside = root / RUNTIME / "csrc"
    folders = [root / name for name in ("packages", "templates", "examples", "docs")]
    sources = {path for folder in folders for suffix in SOURCES for path in folder.rglob(f"*{suffix}")}
    users = {*headers.values(), *(path for path in sources if not path.is_relative_to(inside))}
    included = {name for path in users for name in INCLUDED.findall(path.read_text("utf-8"))}
    return [
        f"{path.relative_to(root)}: no file outside of the runtime includes it: move it to {inside.name}/"
        for name, path in headers.items()
        if name not in included
    ]


def record(root: Path) -> None:
    """Writes the record. Ends the command if headers changed and the number did not, or if the number decreased."""
    number, digests = state(root)
    last, then = recorded(root)
    if number < last or (number == last and digests != then):
        refuse("\n".join(headers_have_their_number(root)))
    text = json.dumps({"version": number, "headers": digests}, indent=1)
    (root / RECORD).write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        refuse(__doc__ or "")
    record(ROOT)
