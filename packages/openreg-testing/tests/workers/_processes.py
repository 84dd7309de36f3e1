# SPDX-License-Identifier: BSD-3-Clause
"""Waits for the end of processes that are not children of this one. Reads /proc, so Linux alone."""

import time
from pathlib import Path

GUARD = 120  # seconds, against hangs


def is_running(process):
    """False for what is gone, and for a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until_gone(process):
    deadline = time.monotonic() + GUARD
    while is_running(process):
        assert time.monotonic() < deadline, f"process {process} still runs"
        time.sleep(0.01)
