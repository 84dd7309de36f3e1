# SPDX-License-Identifier: BSD-3-Clause
"""Profiles a whole program without changing it: ``OPENREG_PROFILE=trace.json python train.py``.

The profile begins when this package is imported, which torch does if openreg-autoload is installed. It ends when the
process exits. A child process that inherits the variable writes its own file, with the process id in the name, and only
if it used a device.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from openreg_profiler._output_file import reason_unwritable

VARIABLE = "OPENREG_PROFILE"
# A variable for child processes: the id of the process that writes the file without a process id in its name.
_OWNER = "_OPENREG_PROFILE_OWNER"


def start() -> None:
    """Begins the profile if the variable is set. Raises ImportError if its path cannot be written."""
    wanted = os.environ.get(VARIABLE, "")
    if not wanted:
        return
    path, is_child = _path_of_this_process(Path(wanted).absolute())
    reason = reason_unwritable(path)
    if reason:
        raise ImportError(
            f"{VARIABLE}={wanted} names a file that cannot be written: {reason}. Name a file in a folder that exists, "
            "such as trace.json, or unset the variable."
        )
    profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1], profile_memory=True)
    profiler.start()
    atexit.register(_finish, profiler, path, os.getpid(), is_child)


def _path_of_this_process(path: Path) -> tuple[Path, bool]:
    """Returns the file that this process writes, and True if it is a child of the process that writes ``path``."""
    owner = os.environ.setdefault(_OWNER, str(os.getpid()))
    if owner == str(os.getpid()):
        return path, False
    return path.with_name(f"{path.stem}.{os.getpid()}{path.suffix}"), True


def _finish(profiler: profile, path: Path, process: int, is_child: bool) -> None:
    """Stops the profile and writes the file, and prints to standard error what it did."""
    if os.getpid() != process:  # a forked child inherits this exit handler, but no profile
        return
    problem = ""
    try:
        profiler.stop()
    except RuntimeError as error:  # the device has failed; the profile contains the tasks until then
        problem = str(error).partition("\n")[0]
        try:
            if profiler.profiler is not None:
                profiler.profiler.use_device = None  # otherwise stop() would synchronize the failed device again
            profiler.stop()
        except RuntimeError as second:
            _say(f"{VARIABLE}: there is no trace: {second}")
            return
    if is_child and not _used_device(profiler):
        return
    try:
        profiler.export_chrome_trace(str(path))
    except (OSError, RuntimeError) as error:
        _say(f"{VARIABLE}: {path} was not written: {error}")
        return
    if not path.is_file() or not path.stat().st_size:
        _say(f"{VARIABLE}: {path} was not written: the folder has gone or the disk is full")
        return
    _say(f"{VARIABLE}: wrote {path}" + (f"; the program ended with a failed device: {problem}" if problem else ""))


def _used_device(profiler: profile) -> bool:
    """Returns True if the profile contains an event of an openreg device."""
    kind = torch._C._autograd.DeviceType.PrivateUse1
    results = profiler.profiler.kineto_results if profiler.profiler is not None else None
    return results is not None and any(event.device_type() == kind for event in results.events())


def _say(text: str) -> None:
    print(text, file=sys.stderr)
