# SPDX-License-Identifier: BSD-3-Clause
"""Lets only one run of nox at a time build in a folder of nox, because two would write the same files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from filelock import FileLock, Timeout

from tools.packages import refuse

# The environment variable that names the folder that this process, or the one that started it, has locked.
VARIABLE = "NOX_FOLDER_LOCKED"

_kept: list[FileLock] = []  # an unreferenced lock would be released


def lock(folder: Path) -> None:
    """Locks a folder of nox until this process ends. Ends the process with status 2 if another run has locked it.

    Processes that a run starts share its lock: sessions that run in parallel, and nox inside a session.
    """
    folder = folder.resolve()
    if os.environ.get(VARIABLE) == str(folder) or "--parallel-worker" in sys.argv:
        return
    folder.mkdir(parents=True, exist_ok=True)
    file, holder = FileLock(folder / "lock", timeout=0), folder / "lock.pid"
    try:
        file.acquire()
    except Timeout:
        process = holder.read_text("utf-8") if holder.exists() else "unknown"
        refuse(f"nox: another run works in {folder} (process {process}); wait until it has ended, or end it")
    holder.write_text(str(os.getpid()), encoding="utf-8")
    os.environ[VARIABLE] = str(folder)
    _kept.append(file)
