# SPDX-License-Identifier: BSD-3-Clause
"""Starts the command, from ``python -m openreg_doctor`` and from backends that have it as a command of their own.

Imports nothing but the standard library, so that an incomplete installation of the doctor is a problem that it tells.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

PROBLEMS, INTERRUPTED = 1, 130
DISTRIBUTION = "openreg-doctor"


def run(arguments: Sequence[str], typed: str, device: str = "") -> int:
    """The exit status of the command: 0 healthy, 1 problems, 2 wrong use.

    ``typed`` is how the user calls it, for the usage; ``device`` is examined where ``--device`` names none.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # errors quote whatever a plug-in said
    try:
        from .command import main

        try:
            code = main(arguments, typed, device)
        except SystemExit as end:  # of argparse, which has said why
            code = int(end.code or 0)
        sys.stdout.flush()
        return code
    except (ModuleNotFoundError, FileNotFoundError) as error:
        repair = f"pip install --force-reinstall {DISTRIBUTION}, with what it requires (packaging, rich)"
        print(f"doctor: the installed {DISTRIBUTION} is incomplete: {error}. Repair it: {repair}", file=sys.stderr)
        return PROBLEMS
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PROBLEMS
    except KeyboardInterrupt:
        return INTERRUPTED
