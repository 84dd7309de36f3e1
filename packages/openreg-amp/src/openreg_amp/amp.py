# SPDX-License-Identifier: BSD-3-Clause
"""Defines the module ``torch.openreg.amp``: PyTorch's functions for mixed precision, for this device alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "get_amp_supported_dtype"]

_DEVICE_TYPE = "openreg"


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns the dtypes that ``torch.autocast("openreg", dtype=...)`` accepts."""
    return [torch.float16, torch.bfloat16]


class autocast(torch.amp.autocast_mode.autocast):
    """The context or decorator ``torch.autocast("openreg", ...)``, which applies to the thread that enters it.

    ``dtype`` is one of :func:`get_amp_supported_dtype`; for another dtype PyTorch warns and disables autocast. With
    ``cache_enabled``, casts of float32 parameters are cached until the outermost context ends. The defaults are fixed,
    as in ``torch.cuda.amp.autocast``. ``torch.autocast("openreg")`` differs: it takes an omitted ``dtype`` or
    ``cache_enabled`` from the surrounding context, or PyTorch's default outside of one.
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: torch.dtype = torch.float16,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__(_DEVICE_TYPE, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """The scaler ``torch.amp.GradScaler("openreg", ...)``; without the argument, PyTorch creates a scaler for CUDA.

    Multiplies the loss by a scale and divides the gradients by the same scale. If a gradient contains infinity or NaN,
    it skips the step and lowers the scale. For tensors of this device it requires the operators of openreg-ops.
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
    """Decorates ``forward`` of an autograd function, as ``torch.amp.custom_fwd`` does for this device.

    With ``cast_inputs``, inside an enabled autocast context, floating-point tensors of this device, except those of
    float64, are converted to that dtype, and ``forward`` runs with autocast disabled. Without it, ``forward`` runs in
    the state of the context.
    """
    decorated: Callable[..., Any] = torch.amp.custom_fwd(fwd, device_type=_DEVICE_TYPE, cast_inputs=cast_inputs)
    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Decorates ``backward`` of an autograd function, as ``torch.amp.custom_bwd`` does for this device.

    ``backward`` runs with the autocast state of ``forward``, which must be decorated with :func:`custom_fwd`, because
    that stores the state.
    """
    decorated: Callable[..., Any] = torch.amp.custom_bwd(bwd, device_type=_DEVICE_TYPE)
    return decorated
