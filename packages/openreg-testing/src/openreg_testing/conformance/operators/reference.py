# SPDX-License-Identifier: BSD-3-Clause
"""Computes reference results on the CPU, in a wider dtype if the CPU does not support a dtype that a GPU supports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .outcome import CallOutcome, attempt
from .transfer import Inputs, change_dtype, copy_inputs

WIDER = {
    torch.float16: (torch.float32, torch.float64),
    torch.bfloat16: (torch.float32, torch.float64),
    torch.float32: (torch.float64,),
    torch.complex64: (torch.complex128,),
    torch.int64: (torch.float64,),
    torch.bool: (torch.uint8, torch.int64, torch.float64),
}


def on_cpu(op: Any, inputs: Inputs, compute: Callable[..., Any]) -> CallOutcome:
    """Returns the outcome of compute(args, kwargs) on the CPU in the dtype of the inputs."""
    args, kwargs = copy_inputs(op, inputs, "cpu")
    return attempt(lambda: compute(args, kwargs), "cpu")


def in_wider_dtype(op: Any, inputs: Inputs, dtype: torch.dtype, compute: Callable[..., Any]) -> CallOutcome | None:
    """Returns the outcome on the CPU in the first wider dtype for which it raises no error, or None."""
    for wide in WIDER.get(dtype, ()):
        args, kwargs = change_dtype(copy_inputs(op, inputs, "cpu"), dtype, wide)
        outcome = attempt(partial(compute, args, kwargs), "cpu")
        if outcome.error is None:
            return outcome
    return None
