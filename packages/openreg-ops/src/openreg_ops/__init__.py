# SPDX-License-Identifier: BSD-3-Clause
"""Operators of the openreg device: importing this package registers them with PyTorch.

It adds :func:`fallback_stats`, :func:`reset_fallback_stats` and :class:`fallback_mode` to ``torch.openreg``.
"""

from __future__ import annotations

import openreg_runtime
from openreg_ops import _C as _C  # registers the operators
from openreg_ops._fallback import FallbackCount, fallback_mode, fallback_stats, reset_fallback_stats

__all__ = ["FallbackCount", "fallback_mode", "fallback_stats", "reset_fallback_stats"]

openreg_runtime.extend("fallback_mode", fallback_mode)
openreg_runtime.extend("fallback_stats", fallback_stats)
openreg_runtime.extend("reset_fallback_stats", reset_fallback_stats)
