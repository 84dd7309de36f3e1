# SPDX-License-Identifier: BSD-3-Clause
"""Runs pytest in a process of its own, on a folder that a test fills, with the plug-in installed."""

import os
import time

import _pythons
import pytest

from openreg_testing.plugin.libraries import CUDA_VARIABLE, DEVICE_VARIABLE

# What a plug-in around these tests, or the CI, may have set.
OF_LIBRARIES = ("TORCH_", "TRANSFORMERS_", "DIFFUSERS_", "ACCELERATE_", "PYTORCH_TESTING_", "PYTEST_")
KEPT = {"TORCH_DEVICE_BACKEND_AUTOLOAD"}
PATIENCE = 600


def run(pytester, monkeypatch, *args, fresh=False, **environment):
    """The result of pytest in the folder; ``fresh``: in a process that has imported nothing before."""
    for name in list(os.environ):
        if (name in (CUDA_VARIABLE, DEVICE_VARIABLE) or name.startswith(OF_LIBRARIES)) and name not in KEPT:
            monkeypatch.delenv(name)
    for name, value in ({"PYTHONDONTWRITEBYTECODE": "1"} | environment).items():
        monkeypatch.setenv(name, value)
    base = f"--basetemp={pytester.path / 'runpytest'}"
    arguments = ["-m", "pytest", base, "-p", "no:cacheprovider", "-rA", *args]
    began = time.monotonic()
    done = _pythons.run(*arguments, env=dict(os.environ), folder=pytester.path, timeout=PATIENCE, fresh=fresh)
    print(done.stdout, done.stderr, sep="\n")
    lines = done.stdout.splitlines(), done.stderr.splitlines()
    return pytest.RunResult(done.returncode, *lines, time.monotonic() - began)


def says(result, *texts):
    """Asserts that each text stands in the output, in any order."""
    output = result.stdout.str() + result.stderr.str()
    for text in texts:
        assert text in output, f"{text!r} is not in\n{output}"


def says_not(result, *texts):
    output = result.stdout.str() + result.stderr.str()
    for text in texts:
        assert text not in output, f"{text!r} is in\n{output}"


def refused(result, *texts):
    """Asserts a usage error: pytest's status 4, an explanation, and no traceback."""
    says(result, "ERROR: ", *texts)
    says_not(result, "Traceback", "INTERNALERROR")
    assert result.ret == 4
