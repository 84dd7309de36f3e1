# SPDX-License-Identifier: BSD-3-Clause
"""What differs between operating systems, for all tests of this package."""

import sys

# Importing torch takes seconds: processes are forked from one that has done that, and used no device.
HAS_FORK = sys.platform != "win32"
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
