# SPDX-License-Identifier: BSD-3-Clause
"""The missing wait of a finding, as a line to write, and where it belongs."""

from __future__ import annotations

import ast
from dataclasses import replace

from openreg_sanitizer.finding import Access, Finding, Frame, Stack, StreamId, user_frame


def advise(finding: Finding) -> Finding:
    """Returns the finding with the line that is missing and the place where it belongs."""
    missing, where, hint = _ADVICE[finding.kind](finding)
    return replace(finding, missing=missing, where=where, hint=hint)


def _before(frame: Frame | None) -> str:
    return f"before {frame}" if frame else "before the second access"


def _after(frame: Frame | None) -> str:
    return f"after {frame}" if frame else "after the first access"


def _consumer(stream: StreamId | None) -> str:
    """Returns an expression for the stream that has to wait: the program's variable, else the current stream."""
    if stream is None:
        return "torch.openreg.current_stream()"
    return stream.name or f"torch.openreg.current_stream({stream.device or ''})"


def expression(stream: StreamId | None) -> str:
    """Returns an expression for a stream: the program's variable if it is known."""
    if stream is None:
        return "stream"
    if stream.name:
        return stream.name
    if stream.is_default:
        return f"torch.openreg.default_stream({stream.device or ''})"
    return "stream"


def _is_communication(access: Access | None) -> bool:
    return access is not None and any("torch/distributed" in frame.file.replace("\\", "/") for frame in access.stack)


def _race(finding: Finding) -> tuple[str, str, str]:
    first, second = finding.first, finding.second
    assert first is not None
    if _is_communication(first) and not _is_communication(second):
        return "work.wait()", _before(second.frame), "the collective with async_op=True returned `work`"
    return f"{_consumer(second.stream)}.wait_stream({expression(first.stream)})", _before(second.frame), ""


def _reuse(finding: Finding) -> tuple[str, str, str]:
    first, second = finding.first, finding.second
    assert first is not None
    if first.stream == finding.first_life.stream:
        # The memory is new to a stream that does not wait for the one that it was allocated for.
        hint = f"the tensor was allocated for {first.stream}, which may not have finished with the memory"
        return f"{_consumer(second.stream)}.wait_stream({expression(first.stream)})", _before(second.frame), hint
    name = variable(finding.first_life.allocated) or "tensor"
    hint = "record_stream() makes the allocator wait for that stream before it reuses the memory"
    return f"{name}.record_stream({expression(first.stream)})", _after(first.frame), hint


def _host(finding: Finding) -> tuple[str, str, str]:
    first = finding.first
    assert first is not None
    hint = "or record an event after the copy and call its synchronize() there"
    return f"{expression(first.stream)}.synchronize()", _before(finding.second.frame), hint


def _free(finding: Finding) -> tuple[str, str, str]:
    freed = user_frame(finding.second_life.freed)
    where = f"freed at {freed}" if freed else "freed before"
    return "", "", f"keep a reference to the tensor until {finding.second.frame or 'the access'}; it was {where}"


def _uninitialized(_: Finding) -> tuple[str, str, str]:
    return "", "", "write the tensor first, or create it with torch.zeros() instead of torch.empty(); this is no race"


def _graph(_: Finding) -> tuple[str, str, str]:
    return "", "", "keep the tensors that the graph uses, and copy new inputs into them before a replay"


def _freed_in_use(finding: Finding) -> tuple[str, str, str]:
    assert finding.first is not None
    name = variable(finding.first_life.allocated) or "tensor"
    hint = "a wait for that stream that follows the release is correct if it precedes the reuse of the memory"
    return f"{name}.record_stream({expression(finding.first.stream)})", _after(finding.first.frame), hint


def _out_of_bounds(finding: Finding) -> tuple[str, str, str]:
    return "", "", f"compare the sizes that {finding.second.operation} uses with those of its operands"


def _poison(_: Finding) -> tuple[str, str, str]:
    hint = (
        "the value comes from memory that nothing had written, or that was used too early or too late. Findings before "
        "this one name the accesses. Without them, an access was not visible: look for NumPy on pinned memory and for "
        "kernels that do not report their operands"
    )
    return "", "", hint


_ADVICE = {
    "race": _race,
    "reuse": _reuse,
    "use-after-free": _free,
    "uninitialized": _uninitialized,
    "host-read": _host,
    "host-write": _host,
    "graph-input": _graph,
    "out-of-bounds": _out_of_bounds,
    "poison": _poison,
    "freed-in-use": _freed_in_use,
}


def variable(stack: Stack) -> str:
    """Returns the variable to which the program assigns what this stack made, or an empty text."""
    for frame in stack:
        if frame.place != "program":
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
