# SPDX-License-Identifier: BSD-3-Clause
"""What runs here the programs of another operating system or processor. None of it is on PyPI."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Emulator:
    """A program that is given another one, what it needs besides, and the packages of Debian and Ubuntu with it."""

    name: str
    programs: tuple[str, ...]  # the first that is found is taken
    packages: str
    root: str = ""  # the folder with the loader and the C library of the target
    oldest: int = 0  # major version
    source: str = ""  # who has one that is new enough

    def program(self) -> str:
        """The path of the program; empty where there is none."""
        return next((path for path in map(shutil.which, self.programs) if path), "")

    def problem(self) -> str:
        """What is missing, or nothing."""
        program = self.program()
        if not program:
            return f"no program {' or '.join(self.programs)} is on the path"
        if self.root and not Path(self.root).is_dir():
            return f"there is no folder {self.root} with the system's libraries"
        if self.oldest:
            version = version_of(program)
            if int(version.partition(".")[0]) < self.oldest:
                return f"{program} is {version}, and {self.oldest}.0 or later is needed ({self.source})"
        return ""

    def command(self) -> list[str]:
        """What comes before the name of a program."""
        return [self.program(), "-L", self.root] if self.root else [self.program()]


def version_of(program: str) -> str:
    """The first number that a program says of itself, 0 where it says none."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"\d+(\.\d+)*", said)
    return match.group() if match else "0"


# By target, as zig names it.
EMULATORS = {
    # Version 8.0 does not know the reserved ranges (placeholders) that platform_windows_memory.cpp needs.
    "x86_64-windows-gnu": Emulator(
        *("Wine", ("wine64", "wine"), "wine wine64"),
        oldest=9,
        source="Debian 13 and Ubuntu 24.04 have it",
    ),
    "aarch64-linux-gnu": Emulator(
        *("QEMU", ("qemu-aarch64", "qemu-aarch64-static"), "qemu-user libc6-arm64-cross"),
        root="/usr/aarch64-linux-gnu",
    ),
}


def missing(targets: Iterable[str]) -> str:
    """What has to be installed before programs for these targets can run, with the command; or nothing."""
    wanted = {target: EMULATORS[target].problem() for target in targets}
    lacking = {target: problem for target, problem in wanted.items() if problem}
    if not lacking:
        return ""
    lines = [f"  {target} needs {EMULATORS[target].name}: {problem}" for target, problem in lacking.items()]
    packages = " ".join(EMULATORS[target].packages for target in lacking)
    install = f"apt-get update && apt-get install --no-install-recommends {packages}"
    return "\n".join(["programs for another system cannot run here:", *lines, "On Debian and Ubuntu:", f"  {install}"])
