# SPDX-License-Identifier: BSD-3-Clause
"""What Inductor, the compiler's default backend, learns of the operator: operators that compute the same.

Whoever generates code for the device can then fuse it with its neighbors. Nothing of Inductor is imported here.
"""

from __future__ import annotations

from types import ModuleType

import torch

# The module whose import brings the registry.
DECOMPOSITIONS = "torch._inductor.decomposition"


def decomposed(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """``openreg::example_scale`` in PyTorch's own operators."""
    return tensor.contiguous() * factor


def register(decomposition: ModuleType) -> None:
    """Puts the decomposition into Inductor's table; the argument is the module that has it."""
    decomposition.register_decomposition([torch.ops.openreg.example_scale.default])(decomposed)
