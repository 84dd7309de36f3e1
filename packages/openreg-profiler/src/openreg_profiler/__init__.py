# SPDX-License-Identifier: BSD-3-Clause
"""Records openreg devices in ``torch.profiler``: kernels, copies and waits of every stream, linked with operators.

Importing this package registers the device's profiler: ``ProfilerActivity.PrivateUse1`` then records openreg devices.
The import also adds ``torch.openreg.profiler``: ranges, marks and names of streams.
"""

from __future__ import annotations

import atexit
import contextlib

import torch

import openreg_runtime

# This check precedes the native module, because that of another build would register with PyTorch or lack a symbol.
openreg_runtime.require_matching_build(__name__)

from openreg_profiler import _C, _auto_profile, _warnings, profiler  # noqa: E402, F401  (_C registers, and calls _warnings)

__all__ = ["profiler"]

openreg_runtime.extend("profiler", profiler)


def _end_open_profile() -> None:
    """Stops an open profile when the process exits, because PyTorch crashes there otherwise."""
    is_open = _C.is_recording()
    _C.abandon_all()  # from here on no call blocks on the device
    if is_open:
        with contextlib.suppress(RuntimeError):  # raised if another thread began the profile
            torch._C._autograd._disable_profiler()


atexit.register(_end_open_profile)
_auto_profile.start()
