# SPDX-License-Identifier: BSD-3-Clause
"""The operator is registered with Inductor when Inductor is imported, which importing the package does not do."""

import subprocess
import sys

import pytest
import torch

from openreg_example import _inductor

pytestmark = pytest.mark.every_subset

IN_A_PROCESS = """
import sys
import openreg_example
assert not [name for name in sys.modules if name.startswith("torch._inductor")]
import torch._inductor.decomposition as inductor
print(inductor.decompositions[inductor.torch.ops.openreg.example_scale.default].__module__)
"""


def test_the_import_of_inductor_registers_the_decomposition():
    command = [sys.executable, "-c", IN_A_PROCESS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert result.stdout == "openreg_example._inductor\n", result.stderr


@pytest.mark.parametrize("device", ["cpu", "openreg"])
def test_the_decomposition_computes_what_the_operator_does(device):
    x = torch.arange(12.0, device=device).reshape(3, 4).t()
    result = _inductor.decomposed(x, 0.5)
    torch.testing.assert_close(result, torch.openreg.example_scale(x.to("openreg"), 0.5).to(device))
    assert result.is_contiguous()
