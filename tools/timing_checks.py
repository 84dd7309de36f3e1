# SPDX-License-Identifier: BSD-3-Clause
"""A rule that keeps tests from needing a fast machine, in the form of those in repo_checks.py, which runs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.packages import discover

SHORTEST_GUARD = 120  # seconds
CLOCK = r"\b(?:perf_counter|monotonic|time)(?:_ns)?\(\)"
# A difference of clock readings, or the time between events.
DURATION = rf"{CLOCK} - |- [\w.]*{CLOCK}|\belapsed(?:_time)?\("
# A positive number that was chosen in advance: of literals and of CONSTANTS.
FIXED = r"(?!0 )\(*[\dA-Z][^a-df-z<>=,]*(?=[<>=,]| and | or |$)"
SIDE = "(?:(?! and | or )[^<>=])*"  # of a comparison
PAUSE = r"\b(?:_sleep|delay)\("  # of the device
UNFINISHED = re.compile(r"\s*assert (?:not .*\b(?:query|stream_ready|event_ready)\(|(?!not ).*\bis_busy\()")


def complaints_of(code: str, pausing: str) -> Iterator[str]:
    """What is wrong in a function or class, one statement a line; `pausing` matches what pauses a stream."""
    names = re.findall(rf"(?m)^\s*(\w+) = .*(?:{DURATION})", code)
    measured = "|".join([DURATION, *(rf"\b{name}\b" for name in names)])
    too_long = re.compile(rf"(?:{measured}){SIDE}<=? {FIXED}|{FIXED}>=? {SIDE}(?:{measured})")
    pauses = re.search(pausing, code) and "gate" not in code.lower()
    for line in code.splitlines():
        if line.strip().startswith("assert ") and too_long.search(f"{line} "):
            yield f"{line}: a duration below a limit needs a fast machine: assert a lower bound, or use a gate"
        if pauses and UNFINISHED.match(line):
            yield f"{line}: a pause that is still running needs a fast machine: hold the work by a gate"
        if any(float(seconds) < SHORTEST_GUARD for seconds in re.findall(r"\btimeout=(\d[\d.]*)(?=[,)])", line)):
            yield f"{line}: a guard against hangs is at least {SHORTEST_GUARD} s long"


# The tests of tools/ judge many copies of the same files.
@cache
def complaints_in(text: str) -> tuple[str, ...]:
    """What is wrong in a file, with the lines at which the functions begin."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    blocks = [(node, ast.unparse(node)) for node in nodes]
    helpers = [
        rf"\b{node.name}\b" for node, code in blocks if re.search(PAUSE, code) and not node.name.startswith("test_")
    ]
    pausing = "|".join([PAUSE, *helpers])
    return tuple(f"{node.lineno}: {found}" for node, code in blocks for found in complaints_of(code, pausing))


def tests_need_no_fast_machine(root: Path) -> list[str]:
    """Tests set no limit to how long something takes, and hold by a gate what has to be still running."""
    folders = [root / "tests", root / "docs" / "tests", *root.glob("templates/*/tests")]
    folders += [package.folder / "tests" for package in discover(root).values()]
    return [
        f"{path.relative_to(root)}:{what}"
        for path in sorted(path for folder in folders for path in folder.rglob("*.py"))
        for what in complaints_in(path.read_text("utf-8"))
    ]
