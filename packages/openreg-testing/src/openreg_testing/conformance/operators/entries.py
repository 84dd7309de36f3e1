# SPDX-License-Identifier: BSD-3-Clause
"""What is run: the entries of PyTorch's table, and the dtypes of each."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16, torch.float16)

# Their results hold what the memory held: sizes, strides and dtypes are all there is to compare.
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}


@functools.cache
def load(table: str) -> Any:
    """The entries of "module:attribute"; by default PyTorch's table."""
    module, attribute = table.split(":")
    if module.startswith("torch.testing"):
        draw_freely()
    return getattr(importlib.import_module(module), attribute)


def draw_freely() -> None:
    """The table's random entries seed the generators on every call; we seed them ourselves, and draw more than once."""
    from torch.testing._internal import common_methods_invocations

    common_methods_invocations.wrapper_set_seed = lambda operator, *args, **kwargs: operator(*args, **kwargs)  # type: ignore[attr-defined]


def dtypes_of(op: Any) -> list[torch.dtype]:
    """Dtypes that PyTorch lists for the CPU or for its own GPU, of those that we run."""
    listed = set(op.dtypes) | set(op.dtypesIfCUDA or ())
    return [dtype for dtype in DTYPES if dtype in listed]


def differentiable(op: Any, dtype: torch.dtype) -> bool:
    """Whether PyTorch lists a gradient for this dtype, on the CPU or on its own GPU."""
    listed = set(op.backward_dtypes or ()) | set(op.backward_dtypesIfCUDA or ())
    return op.supports_autograd and dtype in listed and (dtype.is_floating_point or dtype.is_complex)


def samples_of(op: Any, dtype: torch.dtype, gradient: bool = False) -> list[Any]:
    """The table's samples on the CPU, the same ones each time."""
    torch.manual_seed(2026)
    return list(op.sample_inputs("cpu", dtype, requires_grad=gradient))


def spread(samples: list[Any], most: int) -> list[Any]:
    """At most so many of the samples, evenly chosen."""
    if len(samples) <= most:
        return samples
    return [samples[index * len(samples) // most] for index in range(most)]


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
