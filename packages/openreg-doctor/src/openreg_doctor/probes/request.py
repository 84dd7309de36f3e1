# SPDX-License-Identifier: BSD-3-Clause
"""The request of the doctor to a child process, and the names of steps.

Both processes import this module, so it imports neither torch nor a backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

UNNAMED = "privateuseone"  # the name of the dispatch key if no backend renames it


class CannotCheck(Exception):  # noqa: N818  (not an error: the examination continues)
    """An exception of a probe that cannot check anything, such as without an operator that it needs.

    The text is the reason. The finding then has the status "unseen".
    """


@dataclass(frozen=True)
class Request:
    """The steps of a child process: import torch, then import ``imports``, then probe the device.

    A probe is a step that examines the device. If it ends the process, another child continues after it.
    """

    PROBE_PREFIX: ClassVar[str] = "probe "  # begins the names of the steps that are probes

    device: str  # the device's name
    imports: tuple[str, ...] = ()
    row_keys: tuple[str, ...] = ()  # rows of the hook table (hooks.toml) to check, such as "guard.getStream"
    attributes: tuple[str, ...] = ()  # names to look up in the module torch.<device>
    operator: str = ""  # the operator to explain, as the user wrote it
    call_entry_points: bool = False  # True: find out which entry point of torch.backends names the device
    probe: bool = True  # False: only find out the device's name


def registration_probe(row_key: str) -> str:
    """Returns the name of the probe that finds out if the interface of a row is registered, such as "guard."."""
    return f"{row_key.partition('.')[0]}."


def import_step(module: str) -> str:
    """Returns the name of the step that imports a module."""
    return f"import {module}"
