# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems, for all tests of this package."""

import sys

IS_LINUX = sys.platform == "linux"
DRIVER_LIBRARY = {"win32": "openreg.dll", "darwin": "libopenreg.dylib"}.get(sys.platform, "libopenreg.so")
