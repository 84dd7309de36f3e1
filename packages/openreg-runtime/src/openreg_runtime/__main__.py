# SPDX-License-Identifier: BSD-3-Clause
"""``python -m openreg_runtime doctor``: examines this device. Neither torch nor the device is imported here."""

from __future__ import annotations

import argparse
import os
import sys

PROBLEMS = 1
DEVICE = "openreg"
TYPED = "_OPENREG_COMMAND"  # what the user typed, where that is a command of a package above this one


def run() -> int:
    """The exit status of the command, which is that of the package openreg-doctor with this device as the default."""
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
