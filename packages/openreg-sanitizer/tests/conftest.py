# SPDX-License-Identifier: BSD-3-Clause
"""Brings up the device with its sanitizer: a session has no autoload."""

import os
import sys
from pathlib import Path

import pytest
import torch

import openreg_compile  # noqa: F401
import openreg_ops  # noqa: F401
import openreg_sanitizer  # noqa: F401
from openreg_testing.fresh import FreshPython

sys.path.insert(0, str(Path(__file__).parent))  # the planted bugs


@pytest.fixture(autouse=True)
def empty_cache():
    """Frees cached memory, so that each test knows which block an allocation gets."""
    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    torch.openreg.empty_cache()


@pytest.fixture(scope="session")
def interpreter():
    python = FreshPython()
    yield python
    python.close()


@pytest.fixture
def program(interpreter, tmp_path):
    """Runs code as the file program.py in a process of its own; environment variables are keyword arguments."""

    def run(code, *, fresh=False, **variables):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH_", "OPENREG_"))}
        env |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **variables}
        file = tmp_path / "program.py"
        file.write_text("import torch\nimport openreg_ops\nimport openreg_sanitizer\n" + code, "utf-8")
        return interpreter.run(str(file), env=env, folder=tmp_path, fresh=fresh)

    return run
