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

from openreg_predict import autocast

_ATEN = torch.ops.aten
LSTM = 2  # mkldnn_rnn_layer's number for it


class Fused(TorchFunctionMode):
    """While it is entered, dropout, attention, RMS norms and LSTMs on meta are single operators."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the function, or the operator in its place."""
        args, kwargs = autocast.cast(func, args, kwargs or {})
        instead = _INSTEAD.get(func)
        if instead is not None and args and isinstance(args[0], Tensor) and args[0].device.type == "meta":
            return instead(func, *args, **kwargs)
        return func(*args, **kwargs)


@contextmanager
def fused() -> Iterator[None]:
    """:class:`Fused`, also inside of PyTorch's own function for attention of several heads, which modes do not see."""
    originals = {name: getattr(functional, name) for name in ("scaled_dot_product_attention", "linear")}

    def instead_of(original: Any, substitute: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = autocast.cast(original, args, kwargs)
            if args and isinstance(args[0], Tensor) and args[0].device.type == "meta":
                return substitute(original, *args, **kwargs)
            return original(*args, **kwargs)

        return call

    for name, original in originals.items():
        setattr(functional, name, instead_of(original, _INSTEAD[original]))
    try:
        with autocast.emulated(), Fused():
            yield
    finally:
        for name, original in originals.items():
            setattr(functional, name, original)


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
    groups = query.dim() == 4 and key.dim() == 4 and enable_gqa and query.shape[1] % key.shape[1] == 0
    if query.dim() != 4 or (query.shape[1] != key.shape[1] and not groups) or query.shape[-1] != value.shape[-1]:
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


@torch.library.custom_op("openreg_predict::linear", mutates_args=(), device_types="meta")
def _fused_linear(source: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    del bias
    return source.new_empty(*source.shape[:-1], weight.shape[0])


@torch.library.custom_op("openreg_predict::linear_backward", mutates_args=(), device_types="meta")
def _fused_linear_backward(source: Tensor, gradient: Tensor, weight: Tensor, wanted: list[bool]) -> list[Tensor]:
    del gradient
    shapes = [source.shape, weight.shape, weight.shape[:1]]
    return [source.new_empty(shape) for shape, is_wanted in zip(shapes, wanted, strict=True) if is_wanted]


def _keep_linear(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    del output
    ctx.save_for_backward(inputs[0], inputs[1])


def _linear_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    wanted = list(ctx.needs_input_grad[:3])
    found = iter(_fused_linear_backward(ctx.saved_tensors[0], gradient, ctx.saved_tensors[1], wanted))
    return tuple(next(found) if is_wanted else None for is_wanted in wanted)


_fused_linear.register_autograd(_linear_gradients, setup_context=_keep_linear)


def _linear(original: Any, source: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """Of an input with gaps: PyTorch makes a copy of it on meta, which the device does not need."""
    if source.dim() < 3 or source.is_contiguous():
        return original(source, weight, bias)
    return _fused_linear(source, weight, bias)


def _lstm(original: Any, source: Tensor, *args: Any) -> Any:
    """On sequences of one length, without projections; others stay as they are."""
    states, parameters, has_biases, layers, dropout, training, bidirectional, batch_first = args
    directions = 2 if bidirectional else 1
    if isinstance(states, Tensor) or not has_biases or len(parameters) != 4 * layers * directions:
        return original(source, *args)
    x = (source.transpose(0, 1) if batch_first else source).contiguous()
    keeps = training and torch.is_grad_enabled() and any(item.requires_grad for item in (source, *parameters))
    hidden, cells = [], []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            weights = parameters[4 * index : 4 * index + 4]
            output, last, cell, _ = _ATEN.mkldnn_rnn_layer(
                x, *weights, states[0][index], states[1][index], direction == 1, [], LSTM, weights[1].shape[1], 1, True,
                False, batch_first, keeps,
            )  # fmt: skip
            outputs.append(output)
            hidden.append(last)
            cells.append(cell)
        x = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and training and layer < layers - 1:
            x = torch.native_dropout(x, dropout, True)[0]
    last = tuple(items[0].unsqueeze(0) if len(items) == 1 else torch.stack(items) for items in (hidden, cells))
    return x.transpose(0, 1) if batch_first else x, *last


def _gru(original: Any, source: Tensor, *args: Any) -> Any:
    """On sequences of one length, step by step; others stay as they are."""
    hx, parameters, has_biases, layers, dropout, training, bidirectional, batch_first = args
    directions = 2 if bidirectional else 1
    if not isinstance(hx, Tensor) or not has_biases or len(parameters) != 4 * layers * directions:
        return original(source, *args)
    x = source.transpose(0, 1) if batch_first else source
    last = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            of_input, of_state, input_bias, state_bias = parameters[4 * index : 4 * index + 4]
            state, steps = hx[index], []
            for step in x.unbind(0)[:: -1 if direction else 1]:
                gates = step.mm(of_input.t()), state.mm(of_state.t())
                state = _ATEN._thnn_fused_gru_cell(*gates, state, input_bias, state_bias)[0]
                steps.append(state)
            outputs.append(torch.stack(steps[:: -1 if direction else 1]))
            last.append(state)
        x = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and training and layer < layers - 1:
            x = torch.native_dropout(x, dropout, True)[0]
    return x.transpose(0, 1) if batch_first else x, torch.stack(last)


_INSTEAD: dict[Any, Callable[..., Any]] = {
    functional.dropout: _dropout,
    functional.scaled_dot_product_attention: _attention,
    torch.rms_norm: _rms_norm,
    functional.rms_norm: _rms_norm,
    torch.lstm: _lstm,
    torch.gru: _gru,
    functional.linear: _linear,
}
# What the operators of this file are called where people read it: as those that they stand for.
NAMES = {
    "openreg_predict::linear": "aten::linear",
    "openreg_predict::linear_backward": "aten::linear_backward",
    "openreg_predict::rms_norm": "aten::_fused_rms_norm",
    "openreg_predict::rms_norm_backward": "aten::_fused_rms_norm_backward",
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
    if name == "aten::_thnn_fused_gru_cell":
        state = args[2]
        return torch.empty_like(state), state.new_empty(state.shape[0], 5 * state.shape[1])
    if name == "aten::_thnn_fused_gru_cell_backward":
        state, batch = args[0], args[0].shape[0]
        gates = 3 * state.shape[1]
        found = state.new_empty(batch, gates), state.new_empty(batch, gates), torch.empty_like(state)
        return (*found, state.new_empty(gates), state.new_empty(gates)) if args[2] else (*found, None, None)
    return None
