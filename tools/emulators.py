# SPDX-License-Identifier: BSD-3-Clause
"""What runs here the programs of another operating system or processor. None of it is on PyPI."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Emulator(NamedTuple):
    """A program that is given another one, what it needs besides, and the packages of Debian and Ubuntu with it."""

    program: str
    packages: str
    root: str = ""  # the folder with the loader and the C library of the target
    oldest: int = 0  # major version


# By target, as zig names it. Wine 8 does not know the reserved ranges (placeholders) that platform_windows_memory.cpp
# needs; Debian 13 and Ubuntu 24.04 have a newer one.
EMULATORS = {
    "x86_64-windows-gnu": Emulator("wine", "wine wine64", oldest=9),
    "aarch64-linux-gnu": Emulator("qemu-aarch64", "qemu-user libc6-arm64-cross", root="/usr/aarch64-linux-gnu"),
}


def command(target: str) -> list[str]:
    """What comes before the name of a program for a target; nothing where that cannot run here."""
    emulator = EMULATORS.get(target)
    program = shutil.which(emulator.program) if emulator else None
    if emulator is None or program is None or not Path(emulator.root or "/").is_dir():
        return []
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"\d+", said)
    if int(version.group() if version else 0) < emulator.oldest:
        return []
    return [program, "-L", emulator.root] if emulator.root else [program]


def missing(targets: Iterable[str]) -> str:
    """What has to be installed before programs for these targets can run, with the command; or nothing."""
    lacking = {target: EMULATORS[target] for target in targets if not command(target)}
    lines = [
        f"  {target} needs {item.program}" + (f" {item.oldest}.0 or later" if item.oldest else f" and {item.root}")
        for target, item in lacking.items()
    ]
    install = (
        f"apt-get update && apt-get install --no-install-recommends {' '.join(i.packages for i in lacking.values())}"
    )
    problem = ["programs for another system cannot run here:", *lines, "On Debian and Ubuntu:", f"  {install}"]
    return "\n".join(problem) if lacking else ""
