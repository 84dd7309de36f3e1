# SPDX-License-Identifier: BSD-3-Clause
"""The request of the doctor to a child process. Both import this module, so it imports neither torch nor a backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

UNNAMED = "privateuseone"  # the name of the dispatch key if no backend renames it


class Unseen(Exception):  # noqa: N818  (not an error: the examination continues)
    """An exception of an exercise that cannot check its row. The text is the reason."""


@dataclass(frozen=True)
class Request:
    """The steps of a child process: import torch, then import ``imports``, then exercise the device."""

    PROBE: ClassVar[str] = "probe "  # prefix of the steps whose crash does not end the examination

    device: str  # the device's name
    imports: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()  # keys of hooks.toml to exercise, if there is an exercise
    attributes: tuple[str, ...] = ()  # names to look up in the device's module
    operator: str = ""  # the operator to explain, as the user wrote it
    call_entry_points: bool = False  # True: find out which entry point of torch.backends names the device
    probe: bool = True  # False: only find out the device's name


def import_step(module: str) -> str:
    """Returns the name of the step that imports a module."""
    return f"import {module}"
