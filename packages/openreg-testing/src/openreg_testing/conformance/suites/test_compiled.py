# SPDX-License-Identifier: BSD-3-Clause
"""Every module of PyTorch's own list (ModuleInfo), compiled by torch.compile with Inductor.

The check "compiled" of the suite ``operators`` compiles single operators.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses.
"""

import copy

import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db

from openreg_testing.conformance import modules
from openreg_testing.conformance.error_text import first_line
from openreg_testing.conformance.harness import DeviceUnderTest, covers
from openreg_testing.conformance.operators.check_compiled import is_registered

SAMPLES = 2  # each is compiled for two devices, forward and backward


@covers("registration.register_backend_for_device")
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_a_compiled_module_gives_what_the_cpu_gives(device: DeviceUnderTest, info: ModuleInfo) -> None:
    """A module that is compiled for the device has the results and gradients of the uncompiled one on the CPU."""
    if not device.is_cpu and not is_registered():
        pytest.skip(f"no code generator is registered with Inductor for {device.name!r}")
    skip_unless_the_cpu_compiles(info)
    torch._dynamo.reset()
    modules.compare(device.first, info, torch.compile, SAMPLES)


def skip_unless_the_cpu_compiles(info: ModuleInfo) -> None:
    """Skips a module that Inductor cannot compile for the CPU."""
    torch._dynamo.reset()
    for module, given in modules.cases(info, SAMPLES):
        try:
            modules.run(torch.compile(copy.deepcopy(module)), *modules.moved(given, torch.device("cpu")))
        except Exception as error:
            pytest.skip(f"{info.name} cannot be compiled for the CPU: {first_line(error)}")
