# SPDX-License-Identifier: BSD-3-Clause
"""What a child is asked for. Shared by both sides; imports neither torch nor anything of the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

UNNAMED = "privateuseone"  # the name of a backend that gave the dispatch key none


class Unseen(Exception):  # noqa: N818  (not an error: the examination goes on)
    """Raised by an exercise that cannot tell; its text says why."""


@dataclass(frozen=True)
class Request:
    """Steps of a child: import torch, then ``imports``, then exercise the device."""

    PROBE: ClassVar[str] = "probe "  # how the names of steps begin whose crash does not end the examination

    device: str  # the device's name
    imports: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()  # keys of docs/hooks.toml to exercise, if there is an exercise
    attributes: tuple[str, ...] = ()  # names to look up in the device's module
    operator: str = ""  # the operator to explain, as the user wrote it
    call_entry_points: bool = False  # find out which entry point of torch.backends names the device
    probe: bool = True  # False: only find out which device there is


def import_step(module: str) -> str:
    """The name of the step that imports a module."""
    return f"import {module}"
