# SPDX-License-Identifier: BSD-3-Clause
"""Functions that accelerators run as one operator, and that PyTorch takes apart on ``meta``.

The operators are those that openreg has, too: so a program on meta has the same operators, and the same memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_ATEN = torch.ops.aten
LSTM = 2  # mkldnn_rnn_layer's number for it


class Fused(TorchFunctionMode):
    """While it is entered, dropout, attention, RMS norms and LSTMs on meta are single operators."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the function, or the operator in its place."""
        kwargs = kwargs or {}
        instead = _INSTEAD.get(func)
        if instead is not None and args and isinstance(args[0], Tensor) and args[0].device.type == "meta":
            return instead(func, *args, **kwargs)
        return func(*args, **kwargs)


@contextmanager
def fused() -> Iterator[None]:
    """:class:`Fused`, also inside of PyTorch's own function for attention of several heads, which modes do not see."""
    original = functional.scaled_dot_product_attention

    def attention(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor) and args[0].device.type == "meta":
            return _attention(original, *args, **kwargs)
        return original(*args, **kwargs)

    functional.scaled_dot_product_attention = attention
    try:
        with Fused():
            yield
    finally:
        functional.scaled_dot_product_attention = original


def _dropout(original: Any, *args: Any, **kwargs: Any) -> Any:
    bound = inspect.signature(functional.dropout).bind(*args, **kwargs)
    bound.apply_defaults()
    source, share, training, inplace = bound.args
    if training and 0.0 < share < 1.0 and not inplace:
        return torch.native_dropout(source, share, True)[0]
    return original(*args, **kwargs)


def _attention(
    original: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if query.dim() != 4 or query.shape[1] != key.shape[1] or query.shape[-1] != value.shape[-1]:
        options = {"scale": scale, "enable_gqa": enable_gqa}
        return original(query, key, value, attn_mask, dropout_p, is_causal, **options)
    operator = _ATEN._scaled_dot_product_fused_attention_overrideable
    return operator(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)[0]


@torch.library.custom_op("openreg_predict::rms_norm", mutates_args=(), device_types="meta")
def _fused_rms_norm(source: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(source), source.new_empty(*source.shape[: -weight.dim()], *[1] * weight.dim())


@torch.library.custom_op("openreg_predict::rms_norm_backward", mutates_args=(), device_types="meta")
def _fused_rms_norm_backward(gradient: Tensor, source: Tensor, root: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    del gradient, root
    return torch.empty_like(source), torch.empty_like(weight)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(inputs[0], output[1], inputs[1])


def _rms_norm_gradients(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _fused_rms_norm_backward(gradient, *ctx.saved_tensors)
    return result


_fused_rms_norm.register_autograd(_rms_norm_gradients, setup_context=_keep)


def _rms_norm(
    original: Any, source: Tensor, shape: list[int], weight: Tensor | None = None, eps: float | None = None
) -> Any:
    if weight is None:
        return original(source, shape, weight, eps)
    return _fused_rms_norm(source, weight)[0]


def _lstm(original: Any, source: Tensor, *args: Any) -> Any:
    """Of one direction, with biases, on sequences of one length; others stay as they are."""
    states, parameters, has_biases, layers, dropout, training, bidirectional, batch_first = args
    if isinstance(states, Tensor) or not has_biases or bidirectional or len(parameters) != 4 * layers:
        return original(source, *args)
    x = source.transpose(0, 1) if batch_first else source
    hidden, cells = [], []
    for layer in range(layers):
        weights = parameters[4 * layer : 4 * layer + 4]
        width = weights[1].shape[1]
        x, last, cell, _ = _ATEN.mkldnn_rnn_layer(
            x, *weights, states[0][layer], states[1][layer], False, [], LSTM, width, 1, True, False,
            batch_first, training,
        )  # fmt: skip
        hidden.append(last)
        cells.append(cell)
        if dropout and training and layer < layers - 1:
            x = torch.native_dropout(x, dropout, True)[0]
    return x.transpose(0, 1) if batch_first else x, torch.stack(hidden), torch.stack(cells)


_INSTEAD: dict[Any, Callable[..., Any]] = {
    functional.dropout: _dropout,
    functional.scaled_dot_product_attention: _attention,
    torch.rms_norm: _rms_norm,
    functional.rms_norm: _rms_norm,
    torch.lstm: _lstm,
}


def _workspace(length: int, batch: int, inputs: int, width: int) -> int:
    """Bytes that a layer of an LSTM keeps for its backward pass: what the openreg device allocates.

    oneDNN, which computes it, keeps the form to itself, so this is a bound (rnn_layer.cpp of openreg-ops has the same).
    """

    def padded(count: int) -> int:
        return -(-count // 16) * 16 + 16

    gates = length * (padded(4 * width) + 4 * padded(width))
    states = 8 * (length + 1) * padded(max(inputs, width))
    return 64 + (1 << 16) + 4 * batch * (gates + states)


def run_on_meta(name: str, args: tuple[Any, ...]) -> Any:
    """Results of the operators of recurrent layers, whose shapes PyTorch does not know on meta; None for any other."""
    if name == "aten::mkldnn_rnn_layer":
        source, weight, hidden, cell, training = args[0], args[2], args[5], args[6], args[-1]
        length, batch, inputs = source.shape
        width = weight.shape[1]
        size = _workspace(length, batch, inputs, width) if training and args[9] == LSTM else 0
        workspace = torch.empty(size, dtype=torch.uint8, device="meta")
        return source.new_empty(length, batch, width), torch.empty_like(hidden), torch.empty_like(cell), workspace
    if name == "aten::mkldnn_rnn_layer_backward":
        return tuple(torch.empty_like(item) for item in args[:7])
    return None
