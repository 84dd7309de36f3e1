# SPDX-License-Identifier: BSD-3-Clause
"""Computes the repair of a finding: the wait that is missing, as a line to write, and where it belongs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from openreg_sanitizer.finding import Access, Finding, Stack, StreamId, user_frame


class Advice(NamedTuple):
    """A repair: the missing line with its place, both empty where no single line repairs the program, and a hint."""

    missing: str = ""
    where: str = ""
    hint: str = ""


def advise(finding: Finding) -> Finding:
    """Returns the finding with its repair."""
    advice = _ADVICE[finding.kind](finding)
    return replace(finding, missing=advice.missing, where=advice.where, hint=advice.hint)


# Places and expressions of the program.


def _before(access: Access) -> str:
    return f"before {access.frame or 'the second access'}"


def _after(access: Access) -> str:
    return f"after {access.frame or 'the first access'}"


def _waiting(stream: StreamId | None) -> str:
    """Returns an expression for the stream that has to wait, which is current there: its variable if it is known."""
    if stream is None:
        return "torch.openreg.current_stream()"
    return stream.name or f"torch.openreg.current_stream({stream.device or ''})"


def _awaited(stream: StreamId | None) -> str:
    """Returns an expression for the stream that is waited for: its variable if it is known."""
    if stream is not None and stream.name:
        return stream.name
    if stream is not None and stream.is_default:
        return f"torch.openreg.default_stream({stream.device or ''})"
    return "stream"


def _variable(stack: Stack) -> str:
    """Returns the variable to which the program assigns the tensor that this stack allocated, or an empty text."""
    for frame in stack:
        if frame.owner != "program":
            continue
        try:
            body = ast.parse(frame.source).body
        except SyntaxError:
            return ""
        statement = body[0] if len(body) == 1 else None
        if isinstance(statement, ast.Return):
            continue  # the caller assigns it
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) else ""
    return ""


def _first(finding: Finding) -> Access:
    """Returns the first access of a finding, of a kind that has one."""
    assert finding.first is not None
    return finding.first


def _is_collective(access: Access) -> bool:
    return any("torch/distributed" in frame.file.replace("\\", "/") for frame in access.stack)


# One function for each kind of missing wait.


def _wait_stream(finding: Finding, hint: str = "") -> Advice:
    """The stream of the second access has to wait for that of the first."""
    first, second = _first(finding), finding.second
    return Advice(f"{_waiting(second.stream)}.wait_stream({_awaited(first.stream)})", _before(second), hint)


def _wait_work(finding: Finding) -> Advice:
    """The program has to wait for a collective."""
    return Advice("work.wait()", _before(finding.second), "the collective with async_op=True returned `work`")


def _record_stream(finding: Finding, hint: str) -> Advice:
    """The allocator has to wait for the stream of the first access before it reuses the memory."""
    first = _first(finding)
    tensor = _variable(finding.first_life.allocated) or "tensor"
    return Advice(f"{tensor}.record_stream({_awaited(first.stream)})", _after(first), hint)


def _synchronize(finding: Finding) -> Advice:
    """The host has to wait for the stream of the first access."""
    hint = "or record an event after the copy and call its synchronize() there"
    return Advice(f"{_awaited(_first(finding).stream)}.synchronize()", _before(finding.second), hint)


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
