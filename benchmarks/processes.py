# SPDX-License-Identifier: BSD-3-Clause
"""Runs the scripts of this folder in fresh processes, and orders the devices of a round."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from results import DEVICES

FOLDER = Path(__file__).parent


def turn(number: int) -> tuple[str, ...]:
    """Returns the devices in the order of a round, which changes from round to round."""
    return DEVICES if number % 2 == 0 else DEVICES[::-1]


def run_script(script: str, *arguments: str, device: str, settings: Mapping[str, str] | None = None) -> dict:
    """Runs a script of this folder, and returns the JSON that it prints. For the CPU, it does not load the backend.

    Exits with a message if the script fails.
    """
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0" if device == "cpu" else "1", **(settings or {})}
    command = [sys.executable, str(FOLDER / script), *arguments]
    done = subprocess.run(command, env=env, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{script} {' '.join(arguments)} on {device}: exit status {done.returncode}, see above")
    return json.loads(done.stdout)
