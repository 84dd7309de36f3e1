# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program under callgrind, and reads what callgrind has recorded.

Callgrind (https://valgrind.org/docs/manual/cl-manual.html) counts the instructions of each thread by the file and the
library that they come from. docs/trace/trace.cpp starts it, and cuts the record at events.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.packages import refuse

# The event after which the host only waits (docs/trace/trace.cpp), and the name for what follows a thread's last cut.
RETURNED, IDLE = "returned", "idle"
HOST = 1  # callgrind's number of the first thread
RECORDS = "record"

# callgrind's format: https://valgrind.org/docs/manual/cl-format.html
_EVENT = re.compile(r"(?m)^desc: Trigger: Client Request: (.*)$")
_NAMED = re.compile(r"\((\d+)\)(?: (.+))?")
_COSTS = re.compile(r"[+*\d-]")
# The keys of the lines that name the file or the library of the costs that follow, and those of a called function's.
BY_FILE = (("fl", "fi", "fe"), ("cfi", "cfl"))
BY_LIBRARY = (("ob",), ("cob",))


def instructions_by(dump: str, kind: tuple[tuple[str, ...], tuple[str, ...]]) -> dict[str, int]:
    """Returns the instructions in one thread's record BY_FILE or BY_LIBRARY, without those of called functions."""
    own, called = kind
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    current, is_call = "", False
    for line in dump.splitlines():
        key, _, value = line.partition("=")
        if key in own or key in called:
            named = _NAMED.fullmatch(value)
            if named is None:
                refuse(f"callgrind wrote a line that is not in its format: {line}")
            name = names.setdefault(named[1], named[2] or "")
            current = name if key in own else current
        elif key == "calls":
            is_call = True
        elif _COSTS.match(line):
            if not is_call:
                counts[current] = counts.get(current, 0) + int(line.split()[1])
            is_call = False
    return counts


def records(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yields event, thread and record of each cut, in order, and then of each thread what follows its last cut.

    A cut ends the record of only the thread that makes it.
    """
    cuts: dict[tuple[float, int], str] = {}
    for path in folder.glob(f"{RECORDS}*-*"):
        number, _, of_thread = path.name.removeprefix(RECORDS).removeprefix(".").partition("-")
        cuts[float(number or "inf"), int(of_thread)] = path.read_text("utf-8")
    for (_, thread), text in sorted(cuts.items()):
        event = _EVENT.search(text)
        yield (event[1] if event is not None else IDLE), thread, text


def record(python: Path, *program: str) -> list[tuple[str, int, str]]:
    """Runs a program of Python, and returns event, thread and record of each cut (`records`)."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes"]
        command += [f"--callgrind-out-file={Path(folder) / RECORDS}", str(python), *program]
        env = {name: value for name, value in os.environ.items() if not name.startswith("OPENREG_")}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            refuse(f"{shlex.join(done.args)} failed:\n{done.stdout}{done.stderr}")
        return list(records(Path(folder)))


def until_returned(cuts: list[tuple[str, int, str]]) -> Iterator[tuple[str, int, str]]:
    """Yields all cuts but those of the host after its call has returned, when it waits for the device."""
    returned = False
    for event, thread, text in cuts:
        if thread != HOST or not returned:
            yield event, thread, text
        returned = returned or event == RETURNED
