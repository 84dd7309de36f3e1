# SPDX-License-Identifier: BSD-3-Clause
"""Checks the rows of the hook table (hooks.toml) that are functions of PyTorch's interfaces, or registrations.

Rows are in groups, one per interface. ``attributes`` checks the group ``module``, the names of torch.<device>. A child
process has called an *exercise* for each row, a call from Python that fails if the backend lacks the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..children import StepResult
from ..examination import Examination
from ..finding import Finding, Status
from ..probes.request import registration_probe
from ..probes.unreachable import needs_compiler, reason
from ..table import HookGroup, HookRow

TITLE = "Hooks and registrations"
POSITION = 90

# The call that registers each interface.
_REGISTER = {
    "accelerator_hooks": "at::RegisterPrivateUse1HooksInterface(&hooks), once, when the library is loaded",
    "private_use1_hooks": "at::RegisterPrivateUse1HooksInterface(&hooks), once, when the library is loaded",
    "guard": "C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)",
    "allocator": "REGISTER_ALLOCATOR(c10::kPrivateUse1, &allocator)",
    "device_allocator": "REGISTER_ALLOCATOR(c10::kPrivateUse1, &allocator) with a c10::DeviceAllocator",
    "host_allocator": "REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &allocator)",
    "caching_host_allocator": "derive at::CachingHostAllocatorImpl and register it with REGISTER_HOST_ALLOCATOR",
    "generator": "getNewGenerator and getDefaultGenerator of the hooks, with a c10::GeneratorImpl",
    "graph": "REGISTER_GRAPH_IMPL(NAME, Graph), where NAME is the device's name in upper case",
}
# Words in errors of PyTorch and of exercises about an absent function. Any other error comes from an existing function.
_ABSENT = re.compile(r"implement|not supported|not registered|missing|inherits|no kernel|no fallback", re.IGNORECASE)
# Interfaces without which a device cannot be used at all.
_REQUIRED = {"accelerator_hooks", "guard", "allocator"}


def check(examination: Examination) -> Iterator[Finding]:
    """Yields findings about every group of the hook table except ``module``."""
    if not examination.any_probe_ran or examination.order.operator:
        return
    for group in examination.groups:
        if group.key != "module":
            yield from _group(examination, group)


def _group(examination: Examination, group: HookGroup) -> Iterator[Finding]:
    """Yields a finding if the interface of a group is not registered, and one for each of its rows."""
    registration = examination.probe(registration_probe(group.key))
    missing = registration is not None and bool(registration.root_cause)
    if missing and registration is not None:
        serious = examination.backend is not None or group.key in _REQUIRED
        readers = "; ".join(dict.fromkeys(row.reader for row in group.rows if not row.status))
        yield Finding(
            group.key,
            "problem" if serious else "warning",
            f"{group.title} is not registered: {_failure_text(registration)}",
            f"the code that uses it fails: {readers}",
            _fix(examination, group.rows[0], f"register it: {_REGISTER[group.key]}"),
            "" if examination.backend is not None else group.rows[0].chapter,
        )
    for row in group.rows:
        if not row.status:
            yield _row(examination, row, missing)


def _row(examination: Examination, row: HookRow, group_missing: bool) -> Finding:
    """Returns the finding about a row, from the result of its exercise."""
    step = examination.probe(row.key)
    if step is None:
        fix = "run the doctor with --compiler" if needs_compiler(row.key) else f"test what uses it: {row.reader}"
        return _unseen(row, reason(row.key), fix)
    if step.unseen:
        return _unseen(row, step.unseen, f"if it should work, correct it and run the doctor again{row.model}")
    if group_missing and step.root_cause:
        return _unseen(row, "the interface is not registered", "register it, as its finding describes")
    if step.done:
        return Finding(row.key, "ok", f"{row.name} works")
    status: Status = "problem" if examination.backend is not None or row.required else "warning"
    failure = _failure_text(step)
    is_absent = step.ended or _ABSENT.search(failure)
    fix = _fix(
        examination, row, f"implement {row.name}" if is_absent else f"correct {row.name}, which raises this error"
    )
    if withheld := _withheld(examination, row):
        status = "problem" if row.required else "note"
        fix = f"unset {withheld}"
    chapter = "" if examination.backend is not None else row.chapter
    return Finding(row.key, status, f"{row.name}: {failure}", row.loss, fix, chapter)


def _unseen(row: HookRow, why: str, fix: str) -> Finding:
    """Returns a finding about a row that could not be checked."""
    return Finding(row.key, "unseen", f"{row.name}: {why}", f"if it is missing: {row.loss}", fix)


def _withheld(examination: Examination, row: HookRow) -> str:
    """Returns the setting that makes the row's package register fewer hooks on purpose; empty if none does."""
    owners = examination.backend.owners(row.key) if examination.backend is not None else []
    return next(iter(owners[0].withheld()), "") if owners and owners[0].installed else ""


def _failure_text(step: StepResult) -> str:
    """Returns the error of an exercise, or that it crashed."""
    return f"the call that needs it crashes: {step.ended}" if step.ended else step.text


def _fix(examination: Examination, row: HookRow, advice: str) -> str:
    if examination.backend is None:
        return f"{advice}{row.model}"
    package = (*examination.backend.owners(row.key), examination.backend.device_package)[0]
    return f"pip install {'--force-reinstall ' if package.installed else ''}{package.distribution}"
