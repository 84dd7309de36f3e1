# SPDX-License-Identifier: BSD-3-Clause
"""One more operator for the openreg device.

Importing this package registers ``torch.ops.openreg.example_scale``.
It adds :func:`example_scale` to ``torch.openreg``.

Inductor learns what the operator computes when it is imported, and not before. :class:`LaunchCounter` observes the
device.
"""

from __future__ import annotations

import torch

import openreg_ops  # noqa: F401  (brings the tensors)
import openreg_runtime

# Before the native module is loaded: it would change PyTorch, or fail with an undefined symbol.
openreg_runtime.require_matching_build(__name__)

from openreg_example import _inductor  # noqa: E402
from openreg_example._C import LaunchCounter  # noqa: E402  (importing _C registers the operator)

__all__ = ["LaunchCounter", "example_scale"]


def example_scale(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """A new tensor of the device with ``tensor * factor``, contiguous, of the same shape and dtype.

    Queued on the current stream of the tensor's device. Raises RuntimeError for a tensor that is not floating-point,
    and in a backward pass: the operator has no derivative.
    """
    result: torch.Tensor = torch.ops.openreg.example_scale(tensor, factor)
    return result


openreg_runtime.extend("example_scale", example_scale)
openreg_runtime.after_import(_inductor.DECOMPOSITIONS, _inductor.register)
