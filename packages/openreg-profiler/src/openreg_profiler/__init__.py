# SPDX-License-Identifier: BSD-3-Clause
"""``torch.profiler`` on openreg devices: kernels, copies and waits of every stream, linked with operators.

Importing this package registers the device's profiler: ``ProfilerActivity.PrivateUse1`` then records what devices do.
It adds ``torch.openreg.profiler``: ranges, marks and names of streams.
"""

from __future__ import annotations

import atexit
import contextlib

import torch

import openreg_runtime

# Before the native module is loaded: it would change PyTorch, or fail with an undefined symbol.
openreg_runtime.require_matching_build(__name__)

from openreg_profiler import _C, _whole_program, profiler  # noqa: E402  (importing _C registers)

__all__ = ["profiler"]

openreg_runtime.extend("profiler", profiler)


def _end_open_profile() -> None:
    """At the end of the process. PyTorch crashes there when a profile was not stopped."""
    is_open = _C.is_recording()
    _C.abandon_all()  # from here on nothing waits for the device
    if is_open:
        with contextlib.suppress(RuntimeError):  # of a profile that another thread began
            torch._C._autograd._disable_profiler()


atexit.register(_end_open_profile)
_whole_program.start()
