# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that torch.compile generated have their names in the trace. The tests need openreg-compile."""

import importlib
import importlib.util

import pytest
import torch
from profiles import check, profiled

pytestmark = [
    pytest.mark.every_subset,
    pytest.mark.endurance,  # in the default session test_whole_step.py has such a kernel
    pytest.mark.skipif(
        importlib.util.find_spec("openreg_compile") is None,
        reason="openreg-compile, which generates code, is not installed",
    ),
]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # Inductor's own
def test_generated_kernels_have_their_names(tmp_path):
    importlib.import_module("openreg_compile")

    @torch.compile(fullgraph=True)
    def activation(x, y):
        return torch.nn.functional.gelu(x * y + 1).sum(-1)

    x, y = torch.randn(2, 64, 128, device="openreg")
    activation(x, y)
    torch.openreg.synchronize()
    with profiled(tmp_path) as found:
        activation(x, y)
    (found,) = found
    check(found)
    (kernel,) = [item for item in found.trace.work if item.category == "kernel"]
    assert "gelu" in kernel.name
    assert "fused" in kernel.name
