# SPDX-License-Identifier: BSD-3-Clause
"""Shared fixtures. The marks are those of openreg-testing."""

import os
import sys
import uuid
from pathlib import Path

import pytest
import torch
from manifest import SETUP

import openreg_ops  # noqa: F401  (registers the operators; the tests use them through torch)
from openreg_testing.conformance.operators import device_under_test
from openreg_testing.conformance.pool import Processes
from openreg_testing.fresh import FreshPython

# Tests import helpers from every folder by the names of their files, of which no two are equal.
sys.path += [str(path) for path in Path(__file__).resolve().parent.iterdir() if path.is_dir()]

# Some tests compare as the conformance kit does, in this process.
device_under_test.set_device(SETUP.device, SETUP.manifest)


def pytest_collection_modifyitems(items):
    """A kernel that fails unnoticed fails the test that launched it, and no other."""
    for item in items:
        item.add_marker("sound_device")


@pytest.fixture(autouse=True)
def same_start():
    """Random numbers, counts of fallbacks and the current device are those of no other test."""
    # Both seeds alone: torch.manual_seed() keeps, for each device that is not there, the stack of its caller.
    torch.default_generator.manual_seed(2026)
    torch.openreg.manual_seed_all(2026)
    torch.openreg.reset_fallback_stats()
    yield
    torch.openreg.set_device(0)


@pytest.fixture(scope="session")
def run_program():
    """Runs Python with these arguments in a process that has imported torch and nothing else.

    Environment variables are keyword arguments; of those for backends the process has no others.
    """
    python = FreshPython()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}

    def run(*arguments, folder, **variables):
        env = {**kept, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **variables}
        return python.run(*arguments, env=env, folder=folder)

    yield run
    python.close()


@pytest.fixture
def run_python(run_program, tmp_path):
    """Runs code in such a process, in a folder of the test's own."""

    def run(code, **variables):
        return run_program("-c", code, folder=tmp_path, **variables)

    return run


@pytest.fixture(scope="session")
def processes():
    """Started processes for the runs of the conformance kit, each of which would else start its own."""
    with Processes() as shared:
        yield shared


@pytest.fixture
def custom():
    """Defines an operator in a namespace that ends with the test: (schema, CPU function) to the operator."""
    namespace = f"openreg_test_{uuid.uuid4().hex}"
    library = torch.library.Library(namespace, "DEF")

    def define(schema, function):
        name = library.define(schema)
        library.impl(name, function, "CPU")
        return getattr(getattr(torch.ops, namespace), name)

    yield define
    library._destroy()
