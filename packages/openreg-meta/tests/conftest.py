# SPDX-License-Identifier: BSD-3-Clause
"""Fresh processes, for what happens only once in a process."""

import os
import subprocess
import sys

import pytest
from gate import gate  # noqa: F401  (a fixture)


@pytest.fixture
def python(tmp_path):
    """Runs code in a fresh process; environment variables are keyword arguments."""

    def run(code, **variables):
        env = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
        env.update(variables)
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env=env,
            cwd=tmp_path,
        )

    return run
