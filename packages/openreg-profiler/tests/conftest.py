# SPDX-License-Identifier: BSD-3-Clause
"""Brings up the device with its profiler: a lane has no autoload."""

import os
import subprocess
import sys

import pytest

import openreg_ops  # noqa: F401
import openreg_profiler  # noqa: F401


@pytest.fixture
def python(tmp_path):
    """Runs code in a fresh process, with the device and its profiler; environment variables are keyword arguments."""

    def run(code, *arguments, **variables):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH_", "OPENREG_"))}
        env.update(variables)
        return subprocess.run(
            [sys.executable, *(arguments or ("-c", "import torch, openreg_ops, openreg_profiler\n" + code))],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env=env,
            cwd=tmp_path,
        )

    return run
