# SPDX-License-Identifier: BSD-3-Clause
"""Runs ``python -m openreg_runtime doctor``, which examines this device. Imports neither torch nor the device."""

from __future__ import annotations

import argparse
import os
import sys

PROBLEMS = 1
DEVICE = "openreg"
TYPED = "_OPENREG_COMMAND"  # set by a package that runs this command: the command that the user typed


def run() -> int:
    """Runs the command of openreg-doctor, with this device as the default, and returns its exit status."""
    typed = os.environ.pop(TYPED, "python -m openreg_runtime")
    parser = argparse.ArgumentParser(prog=typed)
    commands = parser.add_subparsers(required=True, metavar="command")
    commands.add_parser("doctor", add_help=False, help="check an installation, or any other PrivateUse1 backend")
    parser.parse_args(sys.argv[1:2])
    try:
        from openreg_doctor.launch import run as examine
    except ModuleNotFoundError as error:
        print(
            f"openreg-doctor, which has the command, is missing ({error}): pip install openreg-doctor", file=sys.stderr
        )
        return PROBLEMS
    return examine(sys.argv[2:], f"{typed} doctor", DEVICE)


sys.exit(run())
