# SPDX-License-Identifier: BSD-3-Clause
"""Provides mixed precision on openreg devices.

The import of this package makes ``torch.autocast("openreg")`` work. It adds ``torch.openreg.amp`` and replaces
``torch.openreg.get_amp_supported_dtype``.
"""

from __future__ import annotations

# The runtime comes first, because it checks torch and loads the libraries that the native module is linked with.
import openreg_runtime

openreg_runtime.require_matching_build(__name__)

from openreg_amp import _C, amp  # noqa: E402, F401  (importing _C registers the rules)

__all__ = ["amp"]

# torch.autocast calls this function of torch.openreg for the dtypes. It replaces that of the runtime, which raises.
openreg_runtime.extend("get_amp_supported_dtype", amp.get_amp_supported_dtype)
openreg_runtime.extend("amp", amp)
