# SPDX-License-Identifier: BSD-3-Clause
"""Translates the operators of this package to operators of ONNX, for ``torch.onnx.export``.

    program = torch.onnx.export(
        model, inputs, dynamo=True, custom_translation_table=openreg_ops.onnx.translations()
    )

Requires onnxscript, which ``pip install "openreg-ops[onnx]"`` installs. PyTorch translates its own operators without
this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import openreg_ops.functional  # noqa: F401  (registers the operators)

try:
    import onnx_ir
    from onnxscript import opset18 as op
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"openreg_ops.onnx needs onnxscript and onnx_ir, of which {error.name} is missing: "
        "pip install 'openreg-ops[onnx]'",
        name=error.name,
    ) from error

__all__ = ["translations"]

_HALF = (onnx_ir.DataType.FLOAT16, onnx_ir.DataType.BFLOAT16)


def translations() -> dict[Any, Callable[..., Any]]:
    """Returns a table for ``custom_translation_table``.

    It has a function for each operator of this package, which builds the ONNX operators that replace it. Operators of
    the backward pass have none, because they are not exported.

    The functions require ONNX opset 18 or later. To add other operators, extend the table:
    ``{**openreg_ops.onnx.translations(), torch.ops.mine.op.default: mine}``.
    """
    ours = torch.ops.openreg
    return {
        ours.add_rms_norm.default: _add_rms_norm,
        ours.custom_abs.default: _absolute,
        ours.custom_autograd_fn_aliasing.default: _identity,
        ours.custom_autograd_fn_returns_self.default: _identity,
        ours.rotary_embedding.default: _rotary_embedding,
        ours.swiglu.default: _swiglu,
    }


def _wide(x: Any, operand: Any) -> Any:
    """Returns `x` converted to float if `operand` has half precision, because the kernels compute in float then."""
    return op.Cast(x, to=onnx_ir.DataType.FLOAT) if operand.dtype in _HALF else x


def _swiglu(gate: Any, up: Any) -> Any:
    wide = _wide(gate, gate)
    return op.CastLike(op.Mul(op.Mul(wide, op.Sigmoid(wide)), _wide(up, gate)), gate)


def _add_rms_norm(x: Any, residual: Any, weight: Any, eps: float = 1e-6) -> tuple[Any, Any]:
    total = op.Add(x, residual)
    wide = _wide(total, x)
    mean = op.ReduceMean(op.Mul(wide, wide), op.Constant(value_ints=[-1]), keepdims=1)
    root = op.Sqrt(op.Add(mean, op.CastLike(op.Constant(value_float=eps), mean)))
    return op.CastLike(op.Mul(op.Div(wide, root), _wide(weight, x)), x), total


def _rotary_embedding(x: Any, angles: Any) -> Any:
    cosine, sine = (op.CastLike(each, x) for each in (op.Cos(angles), op.Sin(angles)))
    first, second = op.Split(x, axis=-1, num_outputs=2)
    return op.Concat(
        op.Sub(op.Mul(first, cosine), op.Mul(second, sine)),
        op.Add(op.Mul(second, cosine), op.Mul(first, sine)),
        axis=-1,
    )


def _absolute(x: Any) -> Any:
    return op.Abs(x)


def _identity(x: Any) -> Any:
    return op.Identity(x)
