# SPDX-License-Identifier: BSD-3-Clause
"""The module ``torch.openreg.amp``: PyTorch's mixed-precision tools with the device filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "get_amp_supported_dtype"]

_DEVICE_TYPE = "openreg"


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that ``torch.autocast("openreg", dtype=...)`` takes; the first is the default."""
    return [torch.float16, torch.bfloat16]


class autocast(torch.amp.autocast_mode.autocast):
    """``torch.autocast("openreg", ...)``: a context and a decorator, for the thread that enters it.

    ``dtype`` is one of :func:`get_amp_supported_dtype`; PyTorch warns about another and leaves autocast disabled. Like
    ``torch.cuda.amp.autocast``, it has defaults of its own. ``torch.autocast("openreg")`` takes arguments that are left
    out from the surrounding context instead. ``cache_enabled`` keeps the casts of float32 parameters until the
    outermost context ends.
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: torch.dtype = torch.float16,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__(_DEVICE_TYPE, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """``torch.amp.GradScaler("openreg", ...)``; without the device, PyTorch would make a scaler for CUDA.

    Scales the loss, takes the scale out of the gradients, skips a step whose gradients hold an infinity or nan, and
    then lowers the scale. To do so takes operators: those of openreg-ops for tensors of this device.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            _DEVICE_TYPE,
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: torch.dtype | None = None) -> Callable[..., Any]:
    """``torch.amp.custom_fwd`` for this device: decorates ``forward`` of an autograd function.

    With ``cast_inputs``, and under autocast, ``forward`` gets its floating-point tensors of this device in that type
    and runs with autocast disabled; without, it runs as the context says.
    """
    decorated: Callable[..., Any] = torch.amp.custom_fwd(fwd, device_type=_DEVICE_TYPE, cast_inputs=cast_inputs)
    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """``torch.amp.custom_bwd`` for this device: runs ``backward`` with the autocast state that ``forward`` had.

    ``forward`` must be decorated with :func:`custom_fwd`, which notes that state.
    """
    decorated: Callable[..., Any] = torch.amp.custom_bwd(bwd, device_type=_DEVICE_TYPE)
    return decorated
