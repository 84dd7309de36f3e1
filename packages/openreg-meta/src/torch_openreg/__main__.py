# SPDX-License-Identifier: BSD-3-Clause
"""Runs ``python -m torch_openreg doctor``, by starting ``python -m openreg_runtime doctor`` in another process.

In this process, an import of openreg_runtime would start the device. A process that runs ``-m openreg_runtime`` does
not start it, so that the doctor, the command that examines an installation, also runs if the start of the device fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

PROBLEMS = 1
TYPED = "_OPENREG_COMMAND"  # the variable by which openreg_runtime receives the command that its usage shows


def run() -> int:
    """Runs the command of the runtime and returns its exit status, or 1 if the runtime is not installed."""
    if find_spec("openreg_runtime") is None:
        print("openreg-runtime, which has the command, is missing: pip install openreg-runtime", file=sys.stderr)
        return PROBLEMS
    command = [sys.executable, "-m", "openreg_runtime", *sys.argv[1:]]
    env = {**os.environ, TYPED: "python -m torch_openreg"}
    return subprocess.run(command, check=False, env=env).returncode


sys.exit(run())
