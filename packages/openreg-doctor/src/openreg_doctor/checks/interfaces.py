# SPDX-License-Identifier: BSD-3-Clause
"""The C++ interfaces, function by function, and the registrations that have neither functions nor names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..children import Step
from ..examination import Examination
from ..finding import Finding, Status
from ..probes.unreachable import needs_compiler, reason
from ..table import Group, Row

TITLE = "Hooks and registrations"
POSITION = 90

# How an interface is registered.
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
# What is said of a function that is not there, by PyTorch or an exercise; anything else is raised by one that is.
_ABSENT = re.compile(r"implement|not supported|not registered|missing|inherits|no kernel|no fallback", re.IGNORECASE)
# Interfaces without which a device cannot be used at all.
_REQUIRED = {"accelerator_hooks", "guard", "allocator"}


def check(examination: Examination) -> Iterator[Finding]:
    """Every other group of the table."""
    if not examination.reached or examination.order.operator:
        return
    for group in examination.groups:
        if group.key != "module":  # a check of its own
            yield from _group(examination, group)


def _group(examination: Examination, group: Group) -> Iterator[Finding]:
    anchor = examination.probe(f"{group.key}.")
    missing = anchor is not None and bool(anchor.root)
    if missing and anchor is not None:
        serious = examination.backend is not None or group.key in _REQUIRED
        readers = "; ".join(dict.fromkeys(row.reader for row in group.rows if not row.status))
        yield Finding(
            group.key,
            "problem" if serious else "warning",
            f"{group.title} is not registered: {_told(anchor)}",
            f"what asks for it fails: {readers}",
            _fix(examination, group.rows[0], f"register it: {_REGISTER[group.key]}"),
            "" if examination.backend is not None else group.rows[0].chapter,
        )
    for row in group.rows:
        if not row.status:
            yield _row(examination, row, missing)


def _row(examination: Examination, row: Row, group_missing: bool) -> Finding:
    step = examination.probe(row.key)
    if step is None:
        alone = f"try what asks for it: {row.reader}"
        return _unseen(row, reason(row.key), "run the doctor with --compiler" if needs_compiler(row.key) else alone)
    if step.unseen:
        return _unseen(row, step.unseen, f"if that should work, mend it and run the doctor again{row.model}")
    if group_missing and step.root:
        return _unseen(row, "the interface is not registered", "register it, as said above")
    if step.done:
        return Finding(row.key, "ok", f"{row.name} answers")
    status: Status = "problem" if examination.backend is not None or row.required else "warning"
    told = _told(step)
    absent = step.ended or _ABSENT.search(told)
    fix = _fix(examination, row, f"implement {row.name}" if absent else f"correct {row.name}, which raises that")
    if withheld := _withheld(examination, row):
        status = "problem" if row.required else "note"
        fix = f"unset {withheld}"
    chapter = "" if examination.backend is not None else row.chapter
    return Finding(row.key, status, f"{row.name}: {told}", row.loss, fix, chapter)


def _unseen(row: Row, why: str, fix: str) -> Finding:
    return Finding(row.key, "unseen", f"{row.name}: {why}", f"if it is missing: {row.loss}", fix)


def _withheld(examination: Examination, row: Row) -> str:
    """The setting under which the package that answers the row registers less on purpose, if one is set."""
    owners = examination.backend.owners(row.key) if examination.backend is not None else []
    return next(iter(owners[0].withheld()), "") if owners and owners[0].installed else ""


def _told(step: Step) -> str:
    """What the exercise met; a crash is worth a word of its own."""
    return f"the call that needs it crashes: {step.ended}" if step.ended else step.text


def _fix(examination: Examination, row: Row, advice: str) -> str:
    if examination.backend is None:
        return f"{advice}{row.model}"
    package = (*examination.backend.owners(row.key), examination.backend.root)[0]
    return f"pip install {'--force-reinstall ' if package.installed else ''}{package.distribution}"
