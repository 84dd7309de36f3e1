# SPDX-License-Identifier: BSD-3-Clause
"""What differs between operating systems, for the benchmarks."""

import os
import re
import socket
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


SO_MAX_PACING_RATE = 47  # <asm-generic/socket.h>: bytes per second that a socket may send, which Python does not name


def slow_links(rate: int) -> int:
    """Lets each TCP socket of this process send so many bytes per second at most; returns how many there are.

    The kernel holds back what is to be sent, with a timer: a link that takes time and hardly a processor. Nothing
    happens outside Linux, where the answer is 0.
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
