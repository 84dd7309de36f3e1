# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems, for all tests of this package."""

import os
import sys

IS_LINUX = sys.platform == "linux"
HAS_FORK = hasattr(os, "fork")
