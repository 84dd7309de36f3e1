# SPDX-License-Identifier: BSD-3-Clause
"""``python -m openreg_runtime doctor``: checks an installation. Neither torch nor the device is imported here."""

from __future__ import annotations

import io
import os
import sys

PROBLEMS, INTERRUPTED = 1, 130
TYPED = "_OPENREG_COMMAND"  # what the user typed, where that is a command of another package


def run() -> int:
    """The exit status of the command; an incomplete installation of the doctor itself is a problem it found."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # errors quote whatever a plug-in said
    try:
        from openreg_runtime.doctor.command import main

        try:
            code = main(sys.argv[1:], os.environ.pop(TYPED, "python -m openreg_runtime"))
        except SystemExit as end:  # of argparse, which has said why
            code = int(end.code or 0)
        sys.stdout.flush()
        return code
    except (ModuleNotFoundError, FileNotFoundError) as error:
        repair = "pip install --force-reinstall openreg-runtime, with what it requires (packaging, rich)"
        print(f"doctor: the installed openreg-runtime is incomplete: {error}. Repair it: {repair}", file=sys.stderr)
        return PROBLEMS
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PROBLEMS
    except KeyboardInterrupt:
        return INTERRUPTED


sys.exit(run())
