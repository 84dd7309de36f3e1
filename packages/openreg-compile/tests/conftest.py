# SPDX-License-Identifier: BSD-3-Clause
"""Brings up the device with autocast rules and the compiler: a lane has no autoload."""

from gate import gate  # noqa: F401  (a fixture)

import openreg_amp  # noqa: F401
import openreg_compile  # noqa: F401
