# SPDX-License-Identifier: BSD-3-Clause
"""Checks how many operators have kernels for the backend's dispatch keys, from which libraries, and what runs the rest.

The three dispatch keys are PrivateUse1, AutogradPrivateUse1 and AutocastPrivateUse1. With an operator to explain
(--op), checks only its overloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..backend import Package
from ..examination import Examination
from ..explanation import FALLBACK, NATIVE, kind_of_kernel
from ..finding import Finding
from ..table import HookRow

TITLE = "Operators"
POSITION = 100

# The rows of the hook table (hooks.toml) for kernels and for autocast rules. The package that implements such a row
# registers them.
_KERNELS, _RULES = "registration.the minimal set of operators", "registration.rules of AutocastPrivateUse1"


def check(examination: Examination) -> Iterator[Finding]:
    """Yields findings about the three dispatch keys, or about the overloads of the operator to explain."""
    explained = examination.probe("operator")
    # A failed step has a root cause. A step that could not check is neither failed nor done.
    if explained is not None and explained.root_cause:
        what = f"the dispatcher's tables for {examination.order.operator} cannot be read: {explained.text}"
        costs = "how the operator is implemented is unknown"
        yield Finding("operators.explanation", "problem", what, costs, "resolve the error shown")
    if explained is not None and explained.done:
        yield from _overloads(examination, explained.value)
    step = examination.probe("operators")
    if step is None:
        return
    if not step.done:
        what = f"the operators of {examination.order.device} cannot be counted: {step.text}"
        costs = "which libraries implement them is unknown"
        yield Finding("operators.PrivateUse1", "problem", what, costs, "resolve the error shown")
        return
    found = step.value
    yield _kernels(examination, found)
    yield _fallback(found)
    yield Finding(
        "operators.AutogradPrivateUse1",
        "ok",
        f"AutogradPrivateUse1: {found['operators']['AutogradPrivateUse1']} kernels of the backend; "
        "the other operators have PyTorch's derivatives",
    )
    yield _autocast(examination, found)


def _overloads(examination: Examination, found: dict[str, Any]) -> Iterator[Finding]:
    """Yields findings about the overloads of the operator to explain that fall back to the CPU or have no kernel."""
    device = examination.order.device
    for name, entries in {found.get("name", ""): found.get("table", {}), **found.get("others", {})}.items():
        how = kind_of_kernel(entries)
        if not name or how == NATIVE:
            continue
        if how == FALLBACK:
            costs = "a call synchronizes the device, and copies operands to the host and results back"
            what = f"{name} falls back to the CPU"
        elif how:
            continue  # a composite; the operators that it calls may have kernels
        else:
            what, costs = (
                f"{name} has neither a kernel for {device} nor a fallback",
                "a call raises NotImplementedError",
            )
        yield Finding(f"operators.overload.{name}", "warning", what, costs, _fix_missing_kernel(examination, name))


def _fix_missing_kernel(examination: Examination, name: str) -> str:
    owner = _owner(examination, _KERNELS)
    if owner is not None and not owner.installed:
        return f"pip install {owner.distribution}"
    # The variables that now make the package register fewer kernels on purpose.
    withheld = owner.withheld() if owner is not None else []
    return f"unset {withheld[-1]}" if withheld else f"register a kernel of {name} for PrivateUse1"


def _owner(examination: Examination, key: str) -> Package | None:
    """Returns the first package that declares code for a row, installed or not; None if there is none."""
    owners = examination.backend.owners(key) if examination.backend is not None else []
    return owners[0] if owners else None


def _row(examination: Examination, key: str) -> HookRow | None:
    """Returns the row of the hook table with this key; None if the table has none for the installed torch."""
    return next((row for group in examination.groups for row in group.rows if row.key == key), None)


def _kernels(examination: Examination, found: dict[str, Any]) -> Finding:
    libraries, device = found["libraries"], examination.order.device
    owner = _owner(examination, _KERNELS)
    counts = ", ".join(f"{number} from {name}" for name, number in sorted(libraries.items()))
    if set(libraries) - {"PyTorch"}:  # PyTorch itself registers kernels for PrivateUse1, such as those of c10d
        return Finding("operators.PrivateUse1", "ok", f"PrivateUse1: {sum(libraries.values())} kernels ({counts})")
    return Finding(
        "operators.PrivateUse1",
        "note",  # the row of the minimal set of operators reports the problem
        f"no operator has a kernel for {device}" + (f", apart from {counts}" if counts else ""),
        f'no tensor can be created on the device: torch.empty(1, device="{device}") fails',
        f"pip install {owner.distribution}"
        if owner is not None
        else "begin with the minimal set: "
        "TORCH_LIBRARY_IMPL(aten, PrivateUse1, m), or torch.library.Library('aten', 'IMPL', 'PrivateUse1')",
    )


def _fallback(found: dict[str, Any]) -> Finding:
    name = "operators.fallback"
    if found["fallbacks"]["PrivateUse1"]:
        return Finding(name, "ok", "a fallback runs operators without a kernel")
    return Finding(
        name,
        "note",
        "there is no fallback: an operator without a kernel raises NotImplementedError",
        "operators without a kernel cannot be used",
        "TORCH_LIBRARY_IMPL(_, PrivateUse1, m) with a boxed function, such as at::native::cpu_fallback",
    )


def _autocast(examination: Examination, found: dict[str, Any]) -> Finding:
    name, device = "operators.AutocastPrivateUse1", examination.order.device
    count = found["operators"]["AutocastPrivateUse1"]
    if count and found["fallbacks"]["AutocastPrivateUse1"]:
        return Finding(name, "ok", f"AutocastPrivateUse1: {count} rules; the other operators run without casts")
    if count:
        return Finding(
            name,
            "problem",
            f"AutocastPrivateUse1 has {count} rules, but no fallthrough for the other operators",
            f'inside torch.autocast("{device}"), every operator without a rule fails',
            "TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }",
        )
    owner, row = _owner(examination, _RULES), _row(examination, _RULES)
    broken = owner is not None and owner.installed
    return Finding(
        name,
        "problem" if broken else "note",
        "AutocastPrivateUse1 has no rules",
        f'torch.autocast("{device}") does not work',
        f"pip install {'--force-reinstall ' if broken else ''}{owner.distribution}"
        if owner is not None
        else f"register the lists of ATen/autocast_mode.h{row.model if row is not None else ''}",
    )
