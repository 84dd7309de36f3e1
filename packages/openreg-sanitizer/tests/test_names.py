# SPDX-License-Identifier: BSD-3-Clause
"""What the package adds to torch.openreg: what it declares, and before it is imported, an error that names it."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
import torch

import openreg_sanitizer

pytestmark = pytest.mark.every_subset

PACKAGE = "openreg-sanitizer"
NAME = "sanitizer"
DECLARED = {point.name: point for point in entry_points(group="openreg.names") if point.dist.name == PACKAGE}


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


def test_who_misses_the_name_is_told_which_package_brings_it():
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", NOT_IMPORTED]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=True)
    assert result.stdout.startswith(f"torch.openreg.{NAME} comes with the package {PACKAGE}, which is ")
