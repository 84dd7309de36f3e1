# SPDX-License-Identifier: BSD-3-Clause
"""The device and its module: how many there are, which one is current, and what the module has to have."""

import torch

from openreg_testing.conformance.harness import Device, promise


@promise("module.the module itself")
def test_the_module_is_registered(accelerator: Device) -> None:
    """torch.get_device_module() gives the module that torch.<device> is."""
    assert torch.get_device_module(accelerator.name) is accelerator.module
