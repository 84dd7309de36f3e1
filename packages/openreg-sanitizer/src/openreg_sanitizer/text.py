# SPDX-License-Identifier: BSD-3-Clause
"""Renders findings as text: the lines of the program first, then the repair, the memory and the stacks.

A stack shows the frames of the program, and names the packages of the others. A whole stack has all frames.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from openreg_sanitizer.finding import KINDS, Access, Finding, Life, Stack, package_of, user_frame, user_frames

_NO_FRAME = "a thread without Python"


def headline(finding: Finding) -> str:
    """Returns the kind of a finding, a line of the program and what it needs: the same for findings with one cause."""
    if not finding.missing:
        return f"{finding.kind}: {finding.second.frame or _NO_FRAME}: {KINDS[finding.kind]}"
    return f"{finding.kind}: {finding.place or _NO_FRAME} needs {finding.missing} {finding.where.partition(' ')[0]} it"


def render(finding: Finding, *, whole_stacks: bool = False) -> str:
    """Returns the text of a finding: several lines, without a newline at the end."""
    second = "second" if finding.first else "access"
    times = f" (found {finding.count} times)" if finding.count > 1 else ""
    head = "openreg-sanitizer: warning:" if finding.is_warning else "openreg-sanitizer:"
    lines = [f"{head} {finding.kind}: {KINDS[finding.kind]}{times}"]
    if finding.first is not None:
        lines += _access("first", finding.first, finding.first_life)
    lines += _access(second, finding.second, finding.second_life)
    if finding.missing:
        lines += [f"  missing: {finding.missing}", f"    write it {finding.where}"]
    if finding.hint:
        lines.append(f"  {'note' if finding.missing else 'repair'}: {finding.hint}")
    lines += _memory(finding)
    if finding.first is not None:
        lines += _stacks("first", finding.first, whole_stacks)
    lines += _stacks(second, finding.second, whole_stacks)
    return "\n".join(lines)


def summary(found: Sequence[Finding]) -> str:
    """Returns the last line of a report: the numbers of findings and warnings."""
    warnings = sum(item.is_warning for item in found)
    parts = [_count(len(found) - warnings, "finding")]
    if warnings:
        parts.append(_count(warnings, "warning"))
    return f"openreg-sanitizer: {', '.join(parts)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _access(label: str, access: Access, life: Life) -> list[str]:
    """Returns the line of the program that made an access, and a description of the access.

    An `end` of 0 in `life` means that the allocation is unknown.
    """
    frame = access.frame
    where = frame or _NO_FRAME
    source = f"  {frame.source}" if frame and frame.source else ""
    actor = "the host" if access.stream is None else f"on {access.stream}"
    operation = access.operation + (f" (of {access.node})" if access.node else "")
    if access.operation == "free":
        return [f"  {label}: {where}{source}", "    the host frees the memory"]
    if access.kind == "host":
        operation = f"{access.operation} on the CPU"
    offset = access.begin - life.begin
    size = f", bytes {offset} to {offset + access.end - access.begin} of its memory" if life.end else ""
    return [f"  {label}: {where}{source}", f"    {operation} {access.verb} {access.tensor}{size}, {actor}"]


def _memory(finding: Finding) -> list[str]:
    """Returns where the memory of both accesses was allocated and freed, once if it is the same allocation."""
    lines: list[str] = []
    shared = finding.first_life == finding.second_life
    for label, life in (("first", finding.first_life), ("second", finding.second_life)):
        if label == "first" and (shared or finding.first is None):
            continue
        name = "memory" if shared or finding.first is None else f"{label} tensor's memory"
        kind = "pinned memory of the host" if life.is_pinned else f"allocated for {life.stream}"
        for stack, verb in ((life.allocated, "allocated"), (life.freed, "freed")):
            frame = user_frame(stack)
            if frame:
                lines.append(f"  {name}: {verb} at {frame}  {frame.source}".rstrip())
        if life.end:
            lines.append(f"  {name}: a block of {life.end - life.begin} bytes at {life.begin:#x}, {kind}")
    return lines


def _stacks(label: str, access: Access, whole: bool) -> list[str]:
    name = "stack of the access" if label == "access" else f"stack of the {label} access"
    return [
        *_stack(name, access.stack, whole),
        *_stack("captured by", access.captured, whole),
        *_stack("forward operator", access.forward, whole),
    ]


def _from_program(stack: Stack) -> Stack:
    """Returns the stack without the frames that called the program, such as those of a test runner or a launcher."""
    outermost = max((i for i, frame in enumerate(stack) if frame.owner == "program"), default=len(stack) - 1)
    return stack[: outermost + 1]


def _stack(name: str, stack: Stack, whole: bool) -> list[str]:
    if not stack:
        return []
    lines = [f"  {name} (innermost last):"]
    frames = stack if whole else _from_program(stack)
    shown = frames if whole else user_frames(frames)
    for is_shown, group in itertools.groupby(reversed(frames), key=lambda frame: frame in shown):
        found = list(group)
        if is_shown:
            lines += [f"    {frame} in {frame.function}  {frame.source}".rstrip() for frame in found]
        else:
            packages = ", ".join(dict.fromkeys(package_of(frame.file) for frame in found))
            lines.append(f"    ... {_count(len(found), 'frame')} of {packages}")
    return lines
