# SPDX-License-Identifier: BSD-3-Clause
"""What all tests have in common; the marks are those of openreg-testing."""

import uuid

import pytest
import torch
from fresh_processes import FreshProcesses
from manifest import SETUP

import openreg_ops  # noqa: F401  (registers the operators; the tests use them through torch)
from openreg_testing.conformance.operators import subject

# Some tests compare as the conformance kit does, in this process.
subject.examine_device(SETUP.device, SETUP.manifest)


def pytest_collection_modifyitems(items):
    """A kernel that fails unnoticed fails the test that launched it, and no other."""
    for item in items:
        item.add_marker("sound_device")


@pytest.fixture(autouse=True)
def same_start():
    """Random numbers, counts of fallbacks and the current device are those of no other test."""
    torch.manual_seed(2026)
    torch.openreg.reset_fallback_stats()
    yield
    torch.openreg.set_device(0)


@pytest.fixture(scope="session")
def fresh_processes():
    processes = FreshProcesses()
    yield processes
    processes.close()


@pytest.fixture
def run_python(fresh_processes, tmp_path):
    """Runs code in a process that has imported torch and nothing else; environment variables are keyword arguments."""

    def run(code, **variables):
        return fresh_processes.run(code, tmp_path, variables)

    return run


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
