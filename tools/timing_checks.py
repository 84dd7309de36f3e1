# SPDX-License-Identifier: BSD-3-Clause
"""A rule that keeps tests from needing a fast machine, in the form of those in repo_checks.py, which runs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.packages import discover

SHORTEST_GUARD = 120  # seconds
CLOCKS = {"perf_counter", "monotonic", "time", "perf_counter_ns", "monotonic_ns", "time_ns"}
DURATIONS = {"elapsed_time", "elapsed"}  # of events
PAUSES = {"_sleep", "delay"}  # of the device
STATES = {"query", "stream_ready", "event_ready"}
BUSY = "is_busy"  # a function of tests, which says the contrary

FIXED_LIMIT = "a duration below a fixed limit needs a fast machine: assert a lower bound, or hold the work by a gate"
PAUSE_STILL_RUNS = "a pause that is still running needs a fast machine: hold the work by a gate"
SHORT_GUARD = f"a guard against hangs is at least {SHORTEST_GUARD} s long"


def called(node: ast.AST) -> str:
    """The last name of what is called; empty if it is no call of a name."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def measures(node: ast.AST, measured: set[str]) -> bool:
    """Whether an expression holds a duration: a difference of clock readings, or the time between events."""
    for part in ast.walk(node):
        if called(part) in DURATIONS or (isinstance(part, ast.Name) and part.id in measured):
            return True
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub):
            read = {called(part.left), called(part.right)} & CLOCKS
            if read:
                return True
    return False


def is_fixed(node: ast.AST) -> bool:
    """Whether an expression is a positive number that was chosen in advance: of literals and of CONSTANTS."""
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    calls = any(isinstance(part, ast.Call) for part in ast.walk(node))
    literal = isinstance(node, ast.Constant) and node.value == 0
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return not calls and not literal and not negative and all(name.isupper() for name in names)


def limits(node: ast.Assert) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The smaller and the greater side of every comparison that an assertion makes."""
    for compare in ast.walk(node.test):
        if isinstance(compare, ast.Compare):
            sides = [compare.left, *compare.comparators]
            for left, operator, right in zip(sides, compare.ops, sides[1:], strict=False):
                if isinstance(operator, (ast.Lt, ast.LtE)):
                    yield left, right
                elif isinstance(operator, (ast.Gt, ast.GtE)):
                    yield right, left


def asserts_unfinished(node: ast.Assert) -> bool:
    """Whether an assertion says that work of the device is not done."""
    test = node.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return called(test.operand) in STATES
    return called(test) == BUSY


def names_in(parts: list[ast.AST]) -> set[str]:
    """Every name and argument among the nodes of a piece of code."""
    return {part.id for part in parts if isinstance(part, ast.Name)} | {
        part.arg for part in parts if isinstance(part, ast.arg)
    }


def complaints_of(block: ast.stmt, pausing: set[str]) -> Iterator[tuple[int, str]]:
    """What is wrong in one statement of a module, such as a test; `pausing` are its helpers that pause a stream."""
    parts = list(ast.walk(block))
    measured = {
        target.id
        for part in parts
        if isinstance(part, ast.Assign) and measures(part.value, set())
        for target in part.targets
        if isinstance(target, ast.Name)
    }
    calls = {called(part) for part in parts}
    names = names_in(parts)
    held = any("gate" in name.lower() for name in names)
    pauses = bool(calls & PAUSES or names & pausing) and not held
    for part in parts:
        if isinstance(part, ast.Assert):
            if any(measures(less, measured) and is_fixed(more) for less, more in limits(part)):
                yield part.lineno, FIXED_LIMIT
            if pauses and asserts_unfinished(part):
                yield part.lineno, PAUSE_STILL_RUNS
        elif isinstance(part, ast.keyword) and part.arg == "timeout" and isinstance(part.value, ast.Constant):
            seconds = part.value.value
            if isinstance(seconds, (int, float)) and seconds < SHORTEST_GUARD:
                yield part.value.lineno, SHORT_GUARD


# The tests of tools/ judge many copies of the same files.
@cache
def complaints_in(text: str) -> tuple[tuple[int, str], ...]:
    """What is wrong in a file, with the lines."""
    body = ast.parse(text).body
    pausing = {
        item.name
        for item in body
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)) and not item.name.startswith("test_")
        if any(called(part) in PAUSES for part in ast.walk(item))
    }
    return tuple(found for block in body for found in sorted(complaints_of(block, pausing)))


def tests_need_no_fast_machine(root: Path) -> list[str]:
    """Tests set no limit to how long something takes, and hold by a gate what has to be still running."""
    folders = [root / "tests", root / "docs" / "tests", *root.glob("templates/*/tests")]
    folders += [package.folder / "tests" for package in discover(root).values()]
    return [
        f"{path.relative_to(root)}:{line}: {what}"
        for path in sorted(path for folder in folders for path in folder.rglob("*.py"))
        for line, what in complaints_in(path.read_text("utf-8"))
    ]
