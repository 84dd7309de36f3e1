# SPDX-License-Identifier: BSD-3-Clause
"""Adds the device ``openreg`` and the module ``torch.openreg`` to PyTorch when it is imported.

The end of this file calls the steps of the start-up in order. The first steps are checks. Each raises ``ImportError``
before anything is registered, so that the process stays usable without the device. In a process that runs the command
``python -m openreg_runtime``, the import skips all steps.
"""

from __future__ import annotations

from collections.abc import Callable

# Functions to call when this package is complete. load_plugins() adds to it if the import of torch, below, calls it.
_after_startup: list[Callable[[], None]] = []

from openreg_runtime._after_import import after_import  # noqa: E402
from openreg_runtime._command_line import runs_as_command  # noqa: E402
from openreg_runtime._loader import load_plugins  # noqa: E402
from openreg_runtime._plugins import Plugin, installed_plugins, require_matching_build  # noqa: E402

__all__ = [
    "DEVICE_TYPE",
    "LaunchEntry",
    "Plugin",
    "after_import",
    "extend",
    "installed_plugins",
    "launch_entry",
    "load_plugins",
    "require_matching_build",
]

if not runs_as_command(__name__):
    from openreg_runtime._startup import (
        DEVICE_TYPE,
        complete_storages,
        export_through_dlpack,
        load_native_module,
        refuse_other_backend,
        refuse_other_torch,
        refuse_unreadable_settings,
        register_device,
        share_between_processes,
        wait_at_exit_for_autograd,
    )

    refuse_unreadable_settings()
    refuse_other_torch()
    refuse_other_backend()
    load_native_module()

    from openreg_runtime import openreg  # needs the native module
    from openreg_runtime._extension import extend
    from openreg_runtime._launch_entry import LaunchEntry, launch_entry
    from openreg_runtime._settings import warn_of_settings_without_effect
    from openreg_runtime.openreg._compiler import register_with_compiler
    from openreg_runtime.openreg._profiler import register_with_profiler

    register_device(openreg)
    complete_storages()
    share_between_processes()
    export_through_dlpack()
    register_with_compiler()
    register_with_profiler()
    wait_at_exit_for_autograd()
    warn_of_settings_without_effect()

    for step in _after_startup:
        step()
