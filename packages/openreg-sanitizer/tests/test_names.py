# SPDX-License-Identifier: BSD-3-Clause
"""What the package adds to torch.openreg: what it declares, and before it is imported, an error that names it."""

import os
from importlib.metadata import entry_points

import pytest
import torch

import openreg_sanitizer

pytestmark = pytest.mark.every_subset

PACKAGE = "openreg-sanitizer"
NAME = "sanitizer"
DECLARED = {point.name: point for point in entry_points(group="openreg.names") if point.dist.name == PACKAGE}


@pytest.mark.covers("module.sanitizer")
def test_the_package_adds_what_it_declares():
    assert set(DECLARED) == {NAME}
    assert getattr(torch.openreg, NAME) is getattr(openreg_sanitizer, NAME) is DECLARED[NAME].load()


NOT_IMPORTED = """
import openreg_runtime, torch
try:
    torch.openreg.sanitizer
except AttributeError as error:
    print(error)
"""


def test_a_missing_name_raises_an_error_with_its_package(interpreter):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH_", "OPENREG_"))}
    result = interpreter.run("-c", NOT_IMPORTED, env={**env, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"torch.openreg.{NAME} comes with the package {PACKAGE}, which is ")
