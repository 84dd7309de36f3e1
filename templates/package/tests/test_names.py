# SPDX-License-Identifier: BSD-3-Clause
"""The package adds to torch.openreg what it declares. Before it is imported, an error names the package."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
import torch

import openreg_example

pytestmark = pytest.mark.every_subset

PACKAGE = "openreg-example"
NAME = "example_scale"
DECLARED = {point.name: point for point in entry_points(group="openreg.names") if point.dist.name == PACKAGE}


@pytest.mark.covers("module.example_scale")
def test_the_package_adds_what_it_declares():
    assert set(DECLARED) == {NAME}
    assert getattr(torch.openreg, NAME) is getattr(openreg_example, NAME) is DECLARED[NAME].load()


NOT_IMPORTED = """
import openreg_runtime, torch
try:
    torch.openreg.example_scale
except AttributeError as error:
    print(error)
"""


def test_a_missing_name_raises_an_error_with_its_package():
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", NOT_IMPORTED]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=True)
    assert result.stdout.startswith(f"torch.openreg.{NAME} comes with the package {PACKAGE}, which is ")
