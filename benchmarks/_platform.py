# SPDX-License-Identifier: BSD-3-Clause
"""Contains the code of the benchmarks that depends on the operating system."""

import os
import re
import socket
import sys
from pathlib import Path


def peak_memory() -> int:
    """Returns the peak of this process's physical memory, in bytes; 0 on Windows, where it is not measured.

    On Linux it is VmHWM, because ru_maxrss of getrusage is at least the memory of the parent process.
    """
    if sys.platform == "linux":
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text("ascii"), re.MULTILINE)
        return int(found.group(1)) * 1024 if found else 0
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 0


def load() -> float:
    """Returns the load average of the last minute: the number of threads that use or wait for a core; 0 on Windows."""
    return 0.0 if sys.platform == "win32" else os.getloadavg()[0]


SO_MAX_PACING_RATE = 47  # <asm-generic/socket.h>: bytes per second that a socket may send, which Python does not name


def slow_links(rate: int) -> int:
    """Limits each TCP socket of this process to `rate` bytes per second. Returns the number of the sockets.

    The kernel delays what is sent, with a timer. So it simulates a link that takes time, but hardly any processor time.
    Does nothing on other systems than Linux, and returns 0 there.
    """
    if sys.platform != "linux":
        return 0
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            copy = socket.socket(fileno=os.dup(int(descriptor.name)))
        except OSError:
            continue  # no socket, or that of the listing
        with copy:
            if copy.family in (socket.AF_INET, socket.AF_INET6) and copy.type == socket.SOCK_STREAM:
                copy.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
                count += 1
    return count
