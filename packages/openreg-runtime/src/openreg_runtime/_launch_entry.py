# SPDX-License-Identifier: BSD-3-Clause
"""Provides the table of C functions by which code that torch.compile generates launches kernels."""

from __future__ import annotations

from typing import NamedTuple

from openreg_runtime import _C


class LaunchEntry(NamedTuple):
    """The version and address of a table of C functions, `orLaunchEntry` (openreg/runtime/launch_entry.h)."""

    version: int
    """The version of the table. A compiler includes it in the keys of its cache."""
    address: int
    """The address of the table in this process, valid until the process ends."""


def launch_entry(version: int | None = None) -> LaunchEntry:
    """Returns the table of C functions by which generated code launches kernels.

    Code that was generated for one version of the table passes that version; the default is the newest version of this
    runtime. Initializes the device. Raises NotImplementedError if the runtime does not support the version.
    """
    requested = _C._launch_entry_version if version is None else version
    return LaunchEntry(requested, _C._launch_entry(requested))
