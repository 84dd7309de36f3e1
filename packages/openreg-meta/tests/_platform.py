# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems, for all tests of this package."""

import os
import sys

IS_LINUX = sys.platform == "linux"
IS_WINDOWS = sys.platform == "win32"
HAS_FORK = hasattr(os, "fork")
