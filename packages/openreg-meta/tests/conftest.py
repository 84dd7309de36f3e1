# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that run code in a fresh process, for what happens once per process."""

import os

import pytest

from openreg_testing.fresh import FreshPython


@pytest.fixture(scope="session")
def fresh_python():
    processes = FreshPython()
    yield processes
    processes.close()


@pytest.fixture(scope="session")
def fresh_python_with_dynamo():
    processes = FreshPython("torch._dynamo")
    yield processes
    processes.close()


def runner(processes, folder):
    def run(code, *, finalize=False, fresh=False, **variables):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
        env.update(variables)
        return processes.run("-c", code, env=env, folder=folder, finalize=finalize, fresh=fresh)

    return run


@pytest.fixture
def python(fresh_python, tmp_path):
    """Runs code in a fresh process that has imported torch; environment variables are keyword arguments.

    With `fresh` the process has imported nothing: for the order of imports.
    """
    return runner(fresh_python, tmp_path)


@pytest.fixture
def python_with_dynamo(fresh_python_with_dynamo, tmp_path):
    """The same with the compiler imported as well, which optimizers and torch.profiler would import."""
    return runner(fresh_python_with_dynamo, tmp_path)


@pytest.fixture
def bring(tmp_path):
    """Installs a package that declares a feature, where `python` runs; it is not to be imported."""

    def run(feature):
        info = tmp_path / "vendor_axis-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-axis\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[openreg.features]\n{feature} = vendor_axis\n", "utf-8")
        (tmp_path / "vendor_axis.py").write_text("raise RuntimeError('imported')\n", "utf-8")

    return run
