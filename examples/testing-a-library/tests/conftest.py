# SPDX-License-Identifier: BSD-3-Clause
"""Every test of the library on the CPU and on both simulated devices, with nothing falling back unnoticed."""

import os

# Read once, when the device is first used. Small memory makes tests of its limits quick.
os.environ.setdefault("OPENREG_DEVICE_MEMORY", "64MiB")
os.environ.setdefault("OPENREG_POISON", "1")

import pytest
import torch

HAS_OPENREG = hasattr(torch, "openreg") and torch.openreg.is_available()


@pytest.fixture
def openreg():
    """The module torch.openreg, for tests that need what only this device offers."""
    if not HAS_OPENREG:
        pytest.skip("openreg is not installed, or switched off")
    yield torch.openreg
    torch.openreg.synchronize()
    torch.openreg.empty_cache()


@pytest.fixture(params=["cpu", "openreg:0", "openreg:1"])
def device(request):
    """A device, current while the test runs."""
    if request.param == "cpu":
        yield torch.device("cpu")
        return
    openreg = request.getfixturevalue("openreg")
    with openreg.device(request.param):
        yield torch.device(request.param)
        openreg.synchronize()  # an error of a kernel belongs to this test


@pytest.fixture(autouse=True)
def nothing_falls_back():
    """An operator without a kernel ends the test, on the line that called it."""
    if not HAS_OPENREG:
        yield
        return
    with torch.openreg.fallback_mode("error"):
        yield
