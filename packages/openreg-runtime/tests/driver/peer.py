# SPDX-License-Identifier: BSD-3-Clause
"""Starts a second process that uses the device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# What a script with the device at hand starts with.
PREAMBLE = """
import ctypes, os, sys, threading, time
sys.path.insert(0, {folder!r})
from driver._platform import c_library
from driver.device_api import *
api = Api({library!r})
libc = c_library()
def native(name):  # the address of a function of the C library
    return ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
"""

SERVE = """
names = dict(globals())
for line in sys.stdin:
    try:
        answer = repr(eval(line, names))
    except DriverError as error:
        answer = repr((error.code.name, error.message))
    print(answer, flush=True)
"""


class Peer:
    """Another process with the device: evaluates expressions in which `api` is its device."""

    def __init__(self, library: Path, settings: Mapping[str, str]) -> None:
        folder = str(Path(__file__).resolve().parents[1])
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", PREAMBLE.format(folder=folder, library=str(library)) + SERVE],
            env={**{k: v for k, v in os.environ.items() if not k.startswith("OPENREG_")}, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, expression: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the process ended over {expression}"
        return eval(answer)

    def end(self) -> int:
        self.process.communicate()
        return self.process.returncode
