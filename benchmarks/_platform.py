# SPDX-License-Identifier: BSD-3-Clause
"""What differs between operating systems, for the benchmarks."""

import os
import re
import sys
from pathlib import Path


def peak_memory() -> int:
    """The most physical memory, in bytes, that this process ever held; 0 on Windows, which is not asked.

    Linux's own count of the process: what getrusage says begins with what its parent held.
    """
    if sys.platform == "linux":
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text("ascii"), re.MULTILINE)
        return int(found.group(1)) * 1024 if found else 0
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 0


def load() -> float:
    """How many threads wanted a core on average over the last minute; 0 on Windows, which does not say."""
    return 0.0 if sys.platform == "win32" else os.getloadavg()[0]
