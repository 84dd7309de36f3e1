# SPDX-License-Identifier: BSD-3-Clause
"""Selects the implementation of attention for nested tensors of layout ``torch.jagged`` on this device.

PyTorch implements these tensors in Python, and selects the implementation of attention by conditions on CUDA. This
file selects memory-efficient attention, which is one launch (``csrc/operators/attention/efficient.cpp``). Otherwise
PyTorch would split the tensors and read each length, which synchronizes with the device once per sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

import openreg_runtime

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _is_enabled() -> bool:
    """Returns True if the user allows one of PyTorch's fused implementations; the kernel counts as each of them."""
    return (
        torch._C._get_mem_efficient_sdp_enabled()
        or torch._C._get_flash_sdp_enabled()
        or torch._C._get_overrideable_sdp_enabled()
    )


def _fits(query: Any, key: Any, value: Any) -> bool:
    """Returns True if the kernel supports the operands.

    They must have the shape (batch, heads, ragged length, width), a supported dtype, equal numbers of heads, and no
    gaps between sequences.
    """
    operands = (query, key, value)
    return (
        all(x.dim() == 4 and x._ragged_idx == 2 and x._lengths is None for x in operands)
        and query.dtype in _DTYPES
        and query.size(0) == key.size(0) == value.size(0)
        and query.size(1) == key.size(1) == value.size(1)
        and query.size(3) == key.size(3)
        and key._size[2] == value._size[2]
    )


def _add_choice(sdpa: ModuleType) -> None:
    """Replaces the function of PyTorch that selects the implementation, for tensors of this device."""
    choose: Callable[..., SDPBackend] = sdpa._select_sdp_backend

    def choose_here(query: Tensor, key: Tensor, value: Tensor, *options: Any) -> SDPBackend:
        if query.device.type == "openreg" and _is_enabled() and _fits(query, key, value):
            return SDPBackend.EFFICIENT_ATTENTION
        return choose(query, key, value, *options)

    sdpa._select_sdp_backend = choose_here  # type: ignore[attr-defined]


openreg_runtime.after_import("torch.nested._internal.sdpa", _add_choice)
