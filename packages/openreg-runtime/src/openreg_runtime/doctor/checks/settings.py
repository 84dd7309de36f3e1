# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables: which are set, to what, which are refused or unknown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches

from ..examination import Examination
from ..finding import Finding

TITLE = "Settings"
POSITION = 50

PREFIX = "OPENREG_"
# Variable -> what holds where it is not set. What it accepts is known where it is read; see the README's table.
DEFAULTS = {
    "OPENREG_DEVICE_COUNT": "2",
    "OPENREG_DEVICE_MEMORY": "half of the memory that the process may use, divided by the devices",
    "OPENREG_LAUNCH_BLOCKING": "0",
    "OPENREG_SCHEDULE_SEED": "fair order, in real time",
    "OPENREG_POISON": "0",
    "OPENREG_FAULTS": "none",
    "PYTORCH_ALLOC_CONF": "PyTorch's",
    "OPENREG_NUM_THREADS": "as many as PyTorch uses",
    "OPENREG_OPS": "full",
    "OPENREG_OPS_LEAVE_OUT": "none",
    "OPENREG_FALLBACK": "allow",
    "OPENREG_KERNELS": "aten",
}
# Read by the repository's own tests.
_OF_THE_REPOSITORY = "OPENREG_TEST_"
# Settings under which the device does less, on purpose; whoever forgot them looks for a fault.
_RESTRICTIONS = {
    "OPENREG_OPS": "only a minimal set of operators is native; the others fall back or are missing",
    "OPENREG_OPS_LEAVE_OUT": "these operators are missing on purpose",
    "OPENREG_FAULTS": "operations fail on purpose",
    "OPENREG_FALLBACK": "operators without a kernel warn or fail",
}


def check(examination: Examination) -> Iterator[Finding]:
    """Each variable with its value or default; they belong to openreg alone."""
    if not examination.order.own:
        return
    for name, default in DEFAULTS.items():
        value = os.environ.get(name)
        if name in examination.refused:
            yield _refused(name, value or "", examination.refused[name])
        elif value is None:
            yield Finding(f"settings.{name}", "ok", f"{name} is not set: {default}")
        elif name in _RESTRICTIONS and value != default:
            fix = f"unset {name} if that is not meant"
            yield Finding(f"settings.{name}", "note", f"{name}={value}", _RESTRICTIONS[name], fix)
        else:
            yield Finding(f"settings.{name}", "ok", f"{name}={value}")
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in DEFAULTS and not name.startswith(_OF_THE_REPOSITORY):
            yield _unknown(name, examination)


def _refused(name: str, value: str, said: str) -> Finding:
    return Finding(
        f"settings.{name}",
        "problem",
        f"{name}={value!r} is refused: {said}",
        "the device does not start",
        f"give what is accepted, or unset {name}",
    )


def _unknown(name: str, examination: Examination) -> Finding:
    if name in examination.refused:  # a setting of a plug-in that this table does not know
        return _refused(name, os.environ[name], examination.refused[name])
    close = get_close_matches(name, DEFAULTS, 1)
    return Finding(
        f"settings.{name}",
        "warning",
        f"{name} is not a setting of openreg" + (f"; is {close[0]} meant?" if close else ""),
        "it has no effect",
        f"write {close[0]}, or unset {name}" if close else f"unset {name}",
    )
