# SPDX-License-Identifier: BSD-3-Clause
"""What the CPU gives; in a wider dtype where it lacks one that a GPU has."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .outcome import Outcome, attempt
from .transfer import Inputs, change_dtype, copy_inputs

WIDER = {
    torch.float16: (torch.float32, torch.float64),
    torch.bfloat16: (torch.float32, torch.float64),
    torch.float32: (torch.float64,),
    torch.complex64: (torch.complex128,),
    torch.int64: (torch.float64,),
    torch.bool: (torch.uint8, torch.int64, torch.float64),
}


def on_cpu(op: Any, inputs: Inputs, compute: Callable[..., Any]) -> Outcome:
    """The outcome of compute(args, kwargs) on the CPU in the sample's own dtype."""
    args, kwargs = copy_inputs(op, inputs, "cpu")
    return attempt(lambda: compute(args, kwargs), "cpu")


def in_wider_dtype(op: Any, inputs: Inputs, dtype: torch.dtype, compute: Callable[..., Any]) -> Outcome | None:
    """The outcome in the first wider dtype that the CPU can compute in, or None."""
    for wide in WIDER.get(dtype, ()):
        args, kwargs = change_dtype(copy_inputs(op, inputs, "cpu"), dtype, wide)
        outcome = attempt(partial(compute, args, kwargs), "cpu")
        if outcome.error is None:
            return outcome
    return None
