# SPDX-License-Identifier: BSD-3-Clause
"""Starts the doctor's commands, for ``python -m openreg_doctor`` and for backends that offer them as their own command.

The module imports only the standard library, so that it can report an incomplete installation of the doctor.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

PROBLEMS, INTERRUPTED = 1, 130
DISTRIBUTION = "openreg-doctor"


def run(arguments: Sequence[str], typed: str, device: str = "") -> int:
    """Runs a command and returns its exit status: 0 healthy, 1 problems, 2 wrong use, 130 interrupted.

    The first argument may be a command of ``projects``. Without one, the command examines a backend.

    ``typed`` is the command as the user typed it, for the usage text. ``device`` is the default of ``--device``.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # reports quote the errors of plug-ins
    try:
        from . import command, projects

        try:
            if arguments[:1] and arguments[0] in projects.COMMANDS:
                from .projects import command as of_projects

                code = of_projects.main(arguments, typed)
            else:
                code = command.main(arguments, typed, device)
        except SystemExit as end:  # of argparse, which has printed the reason
            code = int(end.code or 0)
        sys.stdout.flush()
        return code
    except (ModuleNotFoundError, FileNotFoundError) as error:
        repair = f"pip install --force-reinstall {DISTRIBUTION}, with what it requires (packaging, rich)"
        print(f"doctor: the installed {DISTRIBUTION} is incomplete: {error}; repair it: {repair}", file=sys.stderr)
        return PROBLEMS
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PROBLEMS
    except KeyboardInterrupt:
        return INTERRUPTED
