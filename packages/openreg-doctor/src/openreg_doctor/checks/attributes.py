# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the device module torch.<device> has each name that PyTorch looks up, and that the value fits.

The names are the rows of the group ``module`` of the hook table (hooks.toml).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..examination import Examination
from ..finding import Finding, Status
from ..table import HookRow

TITLE = "Names of the device's module"
POSITION = 80


def check(examination: Examination) -> Iterator[Finding]:
    """Yields a finding for each name of torch.<device>, or one if the module cannot be examined."""
    step = examination.probe("attributes")
    if step is None:
        return
    device = examination.order.device
    if not step.done:
        what = f"the names of torch.{device} cannot be looked up: {step.text}"
        yield Finding("module", "problem", what, "which names PyTorch finds is unknown", "resolve the error shown")
        return
    faults = step.value
    rows = [row for group in examination.groups if group.key == "module" for row in group.rows]
    described = examination.results.value("device")
    if described is not None and not described["module"]:
        yield Finding(
            "module",
            "problem",
            f"torch.{device} does not exist",
            "torch.accelerator, fork_rng and torch.compile fail, even on the CPU",
            f'torch._register_device_module("{device}", module), after rename_privateuse1_backend("{device}")',
            next((row.chapter for row in rows if examination.backend is None), ""),
        )
        return
    if "__name__" in faults:
        yield Finding(
            "module.__name__",
            "problem" if examination.backend is not None else "warning",
            f"torch.{device}.__name__ {faults['__name__']}",
            "torch.compile does not find functions of the module",
            f"name the module so that it ends in .{device}",
            next((row.chapter for row in rows if examination.backend is None), ""),
        )
    for row in rows:
        for name in row.names:
            if name in faults and not _belongs_to_absent_package(examination, row):
                yield _finding(examination, row, name, faults[name])


def _belongs_to_absent_package(examination: Examination, row: HookRow) -> bool:
    """Returns True if only packages that are not installed implement the row.

    Then the row needs no finding, because checks/packages.py reports missing packages.
    """
    owners = examination.backend.owners(row.key) if examination.backend is not None else []
    return bool(owners) and not any(owner.installed for owner in owners)


def _finding(examination: Examination, row: HookRow, name: str, fault: str) -> Finding:
    """Returns the finding about a name. ``fault`` is what is wrong with it; empty if nothing is."""
    device, backend = examination.order.device, examination.backend
    check_name, what = f"module.{name}", f"torch.{device}.{name}"
    if not fault:
        return Finding(check_name, "ok", f"{what} exists")
    status: Status = "warning"
    if backend is not None or row.required:
        status = "problem"
    elif row.for_users_only or row.status:
        status = "note"
    chapter = "" if backend is not None else row.chapter
    if backend is not None:
        provider = (*backend.owners(row.key), backend.device_package)[0].distribution
        fix = f"pip install --force-reinstall --no-deps {provider}; look for code that changes torch.{device}"
    else:
        fix = f"define {name} in the module passed to torch._register_device_module{row.model}"
    return Finding(check_name, status, f"{what}: {fault}", row.loss, fix, chapter)
