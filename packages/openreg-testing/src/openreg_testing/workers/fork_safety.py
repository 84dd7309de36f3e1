# SPDX-License-Identifier: BSD-3-Clause
"""The check that a child forked from this process can compute.

A fork copies the memory and one thread. A device, autograd and GNU's OpenMP rely on their other threads.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from ._platform import HAS_FORK

_SETTLED = 0.2  # seconds within which an idle thread goes to sleep
_DEVICES = ("cuda", "xpu", "mtia")
_AUTOGRAD = "pt_autograd"


class ForeignThread(NamedTuple):
    """A thread of this process that Python did not start."""

    name: str
    library: str  # the library in whose code it waits; empty while it computes, "unknown" if the system hides it


def can_fork() -> str | None:
    """Returns the reason, a clause, why a worker forked from this process could not compute, or None if it could."""
    if not HAS_FORK:
        return "this system has no fork"
    device = used_device()
    if device:
        return f"the device {device} is in use, and a forked child cannot use it"
    deadline = time.monotonic() + _SETTLED
    while True:
        threads = _foreign_threads()
        if any(thread.name.startswith(_AUTOGRAD) for thread in threads):
            return "a backward pass has started autograd's threads, and a forked child cannot run another one"
        if any(thread.library.startswith("libgomp") for thread in threads):
            return "an operator has started OpenMP's threads, and a forked child would wait for them forever"
        if all(thread.library for thread in threads):
            return None
        if time.monotonic() > deadline:
            return "a library computes in another thread, which a forked child would not have"
        time.sleep(0.005)


def used_device() -> str:
    """Returns the type of the device that this process has initialized; empty if there is none."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "_C"):
        return ""
    for device in (torch._C._get_privateuse1_backend_name(), *_DEVICES):
        module = getattr(torch, device, None)
        for name in ("is_initialized", "_is_in_bad_fork"):
            predicate = getattr(module, name, None)
            if callable(predicate) and predicate() is True:
                return str(device)
    return ""


def _foreign_threads() -> list[ForeignThread]:
    """Returns the threads that Python did not start; empty on a system without ``/proc``.

    The threads of GNU's OpenMP have no distinctive name, but they wait in code of libgomp. The threads of OpenBLAS,
    which a fork does not harm, wait in code of the C library.
    """
    ours = {thread.native_id for thread in threading.enumerate()}
    folders = [folder for folder in Path("/proc/self/task").glob("*") if int(folder.name) not in ours]
    if not folders:
        return []
    ranges = _mapped_code()
    threads = []
    for folder in folders:
        with contextlib.suppress(OSError):  # the thread has ended
            name = (folder / "comm").read_text().strip()
            threads.append(ForeignThread(name, _library(folder, ranges)))
    return threads


def _library(thread: Path, ranges: list[tuple[int, int, str]]) -> str:
    """Returns the library in whose code a thread waits; see ``ForeignThread.library``."""
    try:
        fields = (thread / "syscall").read_text().split()  # ends with the address of the next instruction
    except OSError:
        return "unknown"  # the system does not permit the read
    where = int(fields[-1], 16) if len(fields) > 1 else 0
    return next((path for first, last, path in ranges if first <= where < last), "")


def _mapped_code() -> list[tuple[int, int, str]]:
    """Returns (first address, end address, file name) of each executable mapping of this process."""
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "x" in fields[1]:
            first, last = (int(number, 16) for number in fields[0].split("-"))
            ranges.append((first, last, Path(fields[5]).name))
    return ranges
