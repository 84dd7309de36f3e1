# SPDX-License-Identifier: BSD-3-Clause
"""The entry for generated code: where a compiler finds the table through which its kernels are launched."""

from __future__ import annotations

from typing import NamedTuple

from openreg_runtime import _C


class LaunchEntry(NamedTuple):
    """The table `orLaunchEntry` of openreg/runtime/launch_entry.h."""

    version: int
    """The version of the table, which belongs into the key of a compiler's cache."""
    address: int
    """Where it is in this process; valid as long as that lives."""


def launch_entry(version: int | None = None) -> LaunchEntry:
    """The table through which generated code launches kernels.

    Code that was made for one version of the table passes that version. Without an argument it is the newest that this
    runtime serves. Starts the device. Raises NotImplementedError for a version that is not served.
    """
    requested = _C._launch_entry_version if version is None else version
    return LaunchEntry(requested, _C._launch_entry(requested))
