# SPDX-License-Identifier: BSD-3-Clause
"""Imports the device with its profiler, because the test session has no autoload."""

import os

import pytest

import openreg_ops  # noqa: F401
import openreg_profiler  # noqa: F401
from openreg_testing.fresh import FreshPython


@pytest.fixture(scope="session")
def fresh_python():
    processes = FreshPython("torch._dynamo")  # which a profile would import
    yield processes
    processes.close()


@pytest.fixture
def python(fresh_python, tmp_path):
    """Runs code in a fresh process, with the device and its profiler; environment variables are keyword arguments."""

    def run(code, *arguments, **variables):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH_", "OPENREG_"))}
        env.update(variables)
        program = arguments or ("-c", "import torch, openreg_ops, openreg_profiler\n" + code)
        return fresh_python.run(*program, env=env, folder=tmp_path)

    return run
