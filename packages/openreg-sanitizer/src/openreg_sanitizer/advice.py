# SPDX-License-Identifier: BSD-3-Clause
"""Computes the repair of a finding: the wait that is missing, as a line to write, and where it belongs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from openreg_sanitizer import names, statements
from openreg_sanitizer.finding import Access, Finding, Frame, Stack, StreamId, user_frame, user_frames


class Advice(NamedTuple):
    """A repair: the missing line with its place, both empty where no single line repairs the program, and a hint."""

    missing: str = ""
    where: str = ""
    place: Frame | None = None
    hint: str = ""


def advise(finding: Finding) -> Finding:
    """Returns the finding with its repair."""
    advice = _ADVICE[finding.kind](finding)
    return replace(finding, **advice._asdict())


# Places and expressions of the program. An expression is empty where the program has no name for the value.


def _places(access: Access, other: Access | None) -> list[Frame]:
    """Returns the frames of the program for a line that runs before an access, or after it, the innermost first.

    A call that makes both accesses is no such place: the line has to run between them.
    """
    frames = user_frames(access.origin)
    shared = _shared(access.origin, other.origin) if other else ()
    return [frame for frame in frames if not any(frame is item for item in shared)]


def _places_before_second(finding: Finding) -> list[Frame]:
    """Returns the frames for a line that runs between both accesses, the second access's own frame last."""
    return [*_places(finding.second, _first(finding)), *filter(None, [finding.second.frame])]


def _shared(stack: Stack, other: Stack) -> Stack:
    """Returns the outer frames of a stack that are those of another stack, too."""
    count = 0
    for frame, same in zip(reversed(stack), reversed(other), strict=False):
        if frame != same:
            break
        count += 1
    return stack[len(stack) - count :]


def _name(stream: StreamId, frame: Frame, access: Access, *, is_second: bool) -> str:
    """Returns the name of a stream in a frame of an access."""
    is_running = is_second and access.origin is access.stack
    return names.in_scope(stream, frame, is_running=is_running)


def _current(stream: StreamId | None, frame: Frame | None) -> str:
    """Returns an expression for the current stream of a stream's device, in the words of a frame's file."""
    module = statements.module_of_streams(frame) if frame else "torch.openreg"
    return f"{module}.current_stream({(stream.device or '') if stream else ''})"


def _default(stream: StreamId) -> str:
    return f"torch.openreg.default_stream({stream.device or ''})"


def _waiting(stream: StreamId | None, frame: Frame, access: Access) -> str:
    """Returns an expression for the stream that has to wait in a frame of the second access."""
    if stream is None or stream.is_default:
        return _current(stream, frame)
    return _name(stream, frame, access, is_second=True)


def _awaited(stream: StreamId, frame: Frame, access: Access, *, is_second: bool) -> str:
    """Returns an expression for the stream that is waited for in a frame of an access."""
    return _default(stream) if stream.is_default else _name(stream, frame, access, is_second=is_second)


def _ran_on(stream: StreamId, frame: Frame, access: Access) -> str:
    """Returns an expression for the stream of a first access in one of its frames, which may have ended.

    If no variable is known there, the expression is that of the ``with`` block around the frame's line.
    """
    name = _awaited(stream, frame, access, is_second=False)
    block = None if name else statements.entering(frame, "")
    return block.stream if block else name


def _described(stream: StreamId) -> str:
    """Returns what stands for a stream where the program has no name for it."""
    return _default(stream) if stream.is_default else f"<{stream}>"


def _at(word: str, frame: Frame | None, missing: str, hint: str = "") -> Advice:
    """Returns the advice to write a line before or after a frame's line."""
    otherwise = "the second access" if word == "before" else "the first access"
    return Advice(missing, f"{word} {frame or otherwise}", frame, hint)


def _beside(frame: Frame | None, missing: str, hint: str) -> Advice:
    """Returns the advice to write a line after a frame's line, or before it if no line can follow."""
    return _at("before" if frame is not None and statements.leaves(frame) else "after", frame, missing, hint)


class _Assignment(NamedTuple):
    """A statement that assigns a new tensor to a variable."""

    variable: str  # or an attribute
    frame: Frame


def _assignment(stack: Stack) -> _Assignment | None:
    """Returns where the program assigns the tensor that this stack allocated, or None."""
    for frame in stack:
        if frame.owner != "program":
            continue
        try:
            body = ast.parse(frame.source).body
        except SyntaxError:
            return None
        statement = body[0] if len(body) == 1 else None
        if isinstance(statement, ast.Return):
            continue  # the caller assigns it
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        return _Assignment(ast.unparse(target), frame) if isinstance(target, ast.Name | ast.Attribute) else None
    return None


def _first(finding: Finding) -> Access:
    """Returns the first access of a finding, of a kind that has one."""
    assert finding.first is not None
    return finding.first


def _stream(access: Access) -> StreamId:
    """Returns the stream of a first access, which a task makes."""
    assert access.stream is not None
    return access.stream


def _is_collective(access: Access) -> bool:
    return any("torch/distributed" in frame.file.replace("\\", "/") for frame in access.stack)


# One function for each kind of missing wait.


class _Join(NamedTuple):
    """The end of the block that entered the stream of the first access, and the stream's name there."""

    stream: str
    end: Frame
    where: str


def _join(finding: Finding) -> _Join | None:
    """Returns where the program may wait for the work of the first access, or None where its stream has no name."""
    first = _first(finding)
    if _stream(first).is_default:
        return None
    for frame in _places(first, finding.second):
        block = statements.entering(frame, _name(_stream(first), frame, first, is_second=False))
        if block is None:
            continue
        end = replace(frame, line=block.end)
        if statements.leaves(end):  # no line can follow
            continue
        beginning = f", the end of the `with` of line {block.begin}" if block.begin < block.end else ""
        return _Join(block.stream, end, f"after {end}{beginning}")
    return None


def _wait_stream(finding: Finding, hint: str = "") -> Advice:
    """The stream of the second access has to wait for that of the first."""
    first, second = _first(finding), finding.second
    waiting = [(frame, _waiting(second.stream, frame, second)) for frame in _places_before_second(finding)]
    waiting = [(frame, name) for frame, name in waiting if name]
    for frame, name in waiting:
        awaited = _awaited(_stream(first), frame, second, is_second=True)
        if awaited:
            return _at("before", frame, f"{name}.wait_stream({awaited})", hint)
    join = _join(finding)
    if join is not None:
        joined = f"{_current(second.stream, join.end)}.wait_stream({join.stream})"
        if second.stream is None or second.stream.is_default:
            return Advice(joined, join.where, join.end, hint)
        if waiting:
            frame, name = waiting[0]
            note = f"the default stream has to wait, too: {joined}, {join.where}, unless the program does that already"
            return _at("before", frame, f"{name}.wait_stream({_default(_stream(first))})", note)
    described = _described(_stream(first))
    if waiting:
        frame, name = waiting[0]
        return _at("before", frame, f"{name}.wait_stream({described})", hint)
    awaited = _awaited(_stream(first), second.frame, second, is_second=True) if second.frame else ""
    current = _current(second.stream, second.frame)
    return _at("before", second.frame, f"{current}.wait_stream({awaited or described})", hint)


def _wait_work(finding: Finding) -> Advice:
    """The program has to wait for a collective."""
    return _at("before", finding.second.frame, "work.wait()", "the collective with async_op=True returned `work`")


def _record_stream(finding: Finding, hint: str) -> Advice:
    """The allocator has to wait for the stream of the first access before it reuses the memory.

    The stream may be recorded at any time before the tensor is freed, so also where the tensor is made.
    """
    first = _first(finding)
    tensor = _assignment(finding.first_life.allocated)
    frames = [(frame, _ran_on(_stream(first), frame, first)) for frame in user_frames(first.origin)]
    frames = [(frame, stream) for frame, stream in frames if stream]
    if tensor is not None:
        made_in = (tensor.frame.file, tensor.frame.function)
        where = [item for item in frames if (item[0].file, item[0].function) == made_in]
        where += [item for item in frames if statements.mentions(item[0], tensor.variable)]
        where += [(tensor.frame, _awaited(_stream(first), tensor.frame, first, is_second=False))]
        for frame, stream in where:
            if stream:
                return _beside(frame, f"{tensor.variable}.record_stream({stream})", hint)
    allocated = user_frame(finding.first_life.allocated)
    missing = f"<the tensor{f' of {allocated}' if allocated else ''}>.record_stream"
    if frames:
        return _beside(frames[0][0], f"{missing}({frames[0][1]})", hint)
    return _beside(first.frame, f"{missing}({_described(_stream(first))})", hint)


def _synchronize(finding: Finding) -> Advice:
    """The host has to wait for the stream of the first access."""
    first, second = _first(finding), finding.second
    hint = "or record an event after the copy and call its synchronize() there"
    for frame in _places_before_second(finding):
        awaited = _awaited(_stream(first), frame, second, is_second=True)
        if awaited:
            return _at("before", frame, f"{awaited}.synchronize()", hint)
    join = _join(finding)
    if join is not None:
        return Advice(f"{join.stream}.synchronize()", join.where, join.end, hint)
    return _at("before", second.frame, f"{_described(_stream(first))}.synchronize()", hint)


# One function for each kind of finding, except for those that _synchronize() repairs.


def _race(finding: Finding) -> Advice:
    if _is_collective(_first(finding)) and not _is_collective(finding.second):
        return _wait_work(finding)
    return _wait_stream(finding)


def _reuse(finding: Finding) -> Advice:
    stream = _first(finding).stream
    if stream == finding.first_life.stream:
        # The memory is new to a stream that does not wait for the one that it was allocated for.
        return _wait_stream(
            finding, f"the tensor was allocated for {stream}, which may not have finished with the memory"
        )
    return _record_stream(
        finding, "record_stream() makes the allocator wait for that stream before it reuses the memory"
    )


def _freed_in_use(finding: Finding) -> Advice:
    return _record_stream(
        finding, "a wait for that stream that follows the release is correct if it precedes the reuse of the memory"
    )


def _use_after_free(finding: Finding) -> Advice:
    freed = user_frame(finding.second_life.freed)
    where = f"freed at {freed}" if freed else "freed before"
    return Advice(hint=f"keep a reference to the tensor until {finding.second.frame or 'the access'}; it was {where}")


def _uninitialized(_: Finding) -> Advice:
    return Advice(
        hint="write the tensor first, or create it with torch.zeros() instead of torch.empty(); this is no race"
    )


def _graph_input(_: Finding) -> Advice:
    return Advice(hint="keep the tensors that the graph uses, and copy new inputs into them before a replay")


def _out_of_bounds(finding: Finding) -> Advice:
    return Advice(hint=f"compare the sizes that {finding.second.operation} uses with those of its operands")


def _poison(_: Finding) -> Advice:
    return Advice(
        hint="the value comes from memory that nothing had written, or that was used too early or too late. Findings "
        "before this one name the accesses. Without them, an access was not visible: look for NumPy on pinned memory "
        "and for kernels that do not report their operands"
    )


_ADVICE: dict[str, Callable[[Finding], Advice]] = {
    "race": _race,
    "reuse": _reuse,
    "use-after-free": _use_after_free,
    "uninitialized": _uninitialized,
    "host-read": _synchronize,
    "host-write": _synchronize,
    "graph-input": _graph_input,
    "out-of-bounds": _out_of_bounds,
    "poison": _poison,
    "freed-in-use": _freed_in_use,
}
