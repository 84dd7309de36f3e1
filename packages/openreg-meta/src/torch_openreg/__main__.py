# SPDX-License-Identifier: BSD-3-Clause
"""``python -m torch_openreg doctor`` is ``python -m openreg_runtime doctor``, in a process of its own.

This process must not import openreg_runtime, which would start the device instead of the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

PROBLEMS = 1
TYPED = "_OPENREG_COMMAND"  # where openreg_runtime finds the command that its usage shows


def run() -> int:
    """The exit status of the runtime's command."""
    if find_spec("openreg_runtime") is None:
        print("openreg-runtime, which has the command, is missing: pip install openreg-runtime", file=sys.stderr)
        return PROBLEMS
    command = [sys.executable, "-m", "openreg_runtime", *sys.argv[1:]]
    env = {**os.environ, TYPED: "python -m torch_openreg"}
    return subprocess.run(command, check=False, env=env).returncode


sys.exit(run())
