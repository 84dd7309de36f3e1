# SPDX-License-Identifier: BSD-3-Clause
"""Registers the operators of the openreg device with PyTorch when it is imported.

The import also adds :func:`fallback_stats`, :func:`reset_fallback_stats`, :class:`fallback_mode` and
:func:`fallback_operators` to ``torch.openreg``. With ``OPENREG_OPS=minimal`` in the environment, it registers only the
minimal set, which are operators that create, view and copy tensors, and the fallback, which runs others on the CPU.
"""

from __future__ import annotations

import openreg_runtime

openreg_runtime.require_matching_build(__name__)

from openreg_ops import _minimal  # noqa: E402  (registers the minimal set and the fallback)
from openreg_ops._fallback import (  # noqa: E402
    FallbackCount,
    fallback_mode,
    fallback_stats,
    reset_fallback_stats,
)
from openreg_ops._fallback_override import fallback_operators  # noqa: E402

if not _minimal._is_alone():
    from openreg_ops import _C as _C  # registers all other operators
    from openreg_ops import _export as _export
    from openreg_ops import _fake_tensors as _fake_tensors
    from openreg_ops import _nested as _nested
    from openreg_ops import functional as functional  # registers the operators that are implemented in Python

__all__ = ["FallbackCount", "fallback_mode", "fallback_operators", "fallback_stats", "reset_fallback_stats"]

openreg_runtime.extend("fallback_mode", fallback_mode)
openreg_runtime.extend("fallback_operators", fallback_operators)
openreg_runtime.extend("fallback_stats", fallback_stats)
openreg_runtime.extend("reset_fallback_stats", reset_fallback_stats)
