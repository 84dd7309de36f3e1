# SPDX-License-Identifier: BSD-3-Clause
"""Finds races between streams, devices and the host on openreg devices, and names the wait that is missing.

Importing this package adds :class:`sanitizer` to ``torch.openreg``. With ``OPENREG_SANITIZER=1`` it checks the whole
program.
"""

from __future__ import annotations

import openreg_runtime

# This check precedes the import of the native module, which would lack a symbol if it is of another build.
openreg_runtime.require_matching_build(__name__)

from openreg_sanitizer import _program  # noqa: E402
from openreg_sanitizer._session import SanitizerError, sanitizer  # noqa: E402
from openreg_sanitizer.finding import KINDS, Finding  # noqa: E402
from openreg_sanitizer.suppressions import SuppressionError  # noqa: E402
from openreg_sanitizer.text import render  # noqa: E402

__all__ = ["KINDS", "Finding", "SanitizerError", "SuppressionError", "render", "sanitizer"]

openreg_runtime.extend("sanitizer", sanitizer)
_program.start()
