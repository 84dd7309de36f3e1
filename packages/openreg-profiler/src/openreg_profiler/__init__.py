# SPDX-License-Identifier: BSD-3-Clause
"""``torch.profiler`` on openreg devices: kernels, copies and waits of every stream, linked with operators.

Importing this package registers the device's profiler: ``ProfilerActivity.PrivateUse1`` then records what devices do.
It adds ``torch.openreg.profiler``: ranges, marks and names of streams.
"""

from __future__ import annotations

import atexit

import openreg_runtime

# Before the native module is loaded: it would change PyTorch, or fail with an undefined symbol.
openreg_runtime.require_matching_build(__name__)

from openreg_profiler import _C, _whole_program, profiler  # noqa: E402  (importing _C registers)

__all__ = ["profiler"]

openreg_runtime.extend("profiler", profiler)
# The device may still work when what a recording stands in is taken down.
atexit.register(_C.abandon_all)
_whole_program.start()
