# SPDX-License-Identifier: BSD-3-Clause
"""Operators that PyTorch does not have, for tensors on the openreg device.

:func:`swiglu`, :func:`add_rms_norm` and :func:`clip_grad_norm_` call operators that are registered in C++
(``csrc/mechanisms``, ``csrc/operators/normalization``). :func:`rotary_embedding` is implemented and registered in this
file, in Python. Another operator in Python needs changes only in this file, because the package imports it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor

from openreg_ops import _minimal

__all__ = ["add_rms_norm", "clip_grad_norm_", "rotary_embedding", "swiglu"]

if _minimal._is_alone():
    raise ImportError(
        "openreg_ops.functional needs operators that OPENREG_OPS=minimal does not register; "
        "unset it, and start the process again"
    )


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Computes ``silu(gate) * up``, in one kernel forward and one backward; differentiable any number of times.

    Both operands have one shape and dtype: float, double, half or bfloat16.
    """
    return cast(Tensor, torch.ops.openreg.swiglu(gate, up))


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Computes ``total = x + residual`` and ``normalized = rms_norm(total) * weight`` in one kernel, and returns both.

    Returns ``(normalized, total)``. The norm is over the last dimension, whose size is that of `weight`. Differentiable
    once: a second derivative raises NotImplementedError.
    """
    normalized, total = torch.ops.openreg.add_rms_norm(x, residual, weight, eps)
    return normalized, total


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float) -> Tensor:
    """Scales all gradients so that their common 2-norm is at most `max_norm`, and returns the norm before scaling.

    Has the effect of ``torch.nn.utils.clip_grad_norm_``, with two kernels. `parameters` may be one tensor. All
    gradients have one device and one dtype. Parameters without a gradient are skipped. The result is on the device, so
    reading it synchronizes.
    """
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.tensor(0.0)
    norm, factor = torch.ops.aten._openreg_clip_factor(gradients, max_norm)
    torch._foreach_mul_(gradients, factor)
    return cast(Tensor, norm)


# rotary_embedding is a custom operator in Python: its kernel for one device, and its fake, autograd and vmap functions.


def _check_angles(x: Tensor, angles: Tensor) -> None:
    if x.dim() == 0 or angles.dim() == 0 or x.shape[-1] != 2 * angles.shape[-1]:
        raise ValueError(
            f"rotary_embedding: expected half as many angles as features, but got {list(angles.shape)} angles for "
            f"features {list(x.shape)}"
        )
    sizes = zip(reversed(angles.shape[:-1]), reversed(x.shape[:-1]), strict=False)
    if angles.dim() > x.dim() or any(size not in (1, of_x) for size, of_x in sizes):
        raise ValueError(
            f"rotary_embedding: expected angles that broadcast to the features, but got {list(angles.shape)} angles "
            f"for features {list(x.shape)}"
        )


@torch.library.custom_op("openreg::rotary_embedding", mutates_args=(), device_types="openreg")
def rotary_embedding(x: Tensor, angles: Tensor) -> Tensor:
    """Rotates each pair of features by an angle, which encodes the position of a token for a transformer.

    Feature i of the first half of the last dimension of `x` makes a pair with feature i of the second half. `angles`
    has half of that dimension and is broadcast to the others. Its shape is for example (tokens, features / 2). It gets
    no gradient.
    """
    _check_angles(x, angles)
    first, second = x.chunk(2, dim=-1)
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


@rotary_embedding.register_fake
def _(x: Tensor, angles: Tensor) -> Tensor:
    _check_angles(x, angles)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _save_angles(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG001  (passed by name)
    ctx.save_for_backward(inputs[1])


def _rotate_back(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    (angles,) = ctx.saved_tensors
    return rotary_embedding(grad, -angles), None


rotary_embedding.register_autograd(_rotate_back, setup_context=_save_angles)


@rotary_embedding.register_vmap
def _(info: Any, in_dims: tuple[int | None, int | None], x: Tensor, angles: Tensor) -> tuple[Tensor, int]:
    x_dim, angles_dim = in_dims
    x = x.expand(info.batch_size, *x.shape) if x_dim is None else x.movedim(x_dim, 0)
    if angles_dim is not None:
        angles = angles.movedim(angles_dim, 0)
        # The batch dimension becomes the first one of both. Dimensions of size 1 after it broadcast the angles.
        angles = angles.reshape(info.batch_size, *[1] * (x.dim() - angles.dim()), *angles.shape[1:])
    return rotary_embedding(x, angles), 0
