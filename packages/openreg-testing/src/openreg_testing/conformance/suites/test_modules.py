# SPDX-License-Identifier: BSD-3-Clause
"""Every module of PyTorch's own list (ModuleInfo): its results and gradients on the device and on the CPU are equal.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses.
"""

import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db

from openreg_testing.conformance import modules
from openreg_testing.conformance.harness import DeviceUnderTest, covers


@covers("registration.a backward pass")
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_a_module_gives_what_the_cpu_gives(device: DeviceUnderTest, info: ModuleInfo) -> None:
    """A module on the device has the results and gradients of an equal module on the CPU, in float32."""
    modules.compare(device.first, info, lambda module: module, samples=4)


@covers("registration.a backward pass")
def test_a_module_moves_there_and_back(device: DeviceUnderTest) -> None:
    """Module.to() moves parameters and buffers to the device and back, and keeps their numbers."""
    module = torch.nn.BatchNorm1d(3)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    module.to(device.first)
    assert {value.device for value in module.state_dict().values()} == {device.first}
    module.to("cpu")
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
