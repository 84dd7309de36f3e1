# SPDX-License-Identifier: BSD-3-Clause
"""Functions that accelerators run as one operator, but that PyTorch decomposes on ``meta``.

This module replaces them by the operators of the openreg device. So a program on meta has the operators and the memory
of a program on the device.
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
LSTM = 2  # the value of the argument mode of mkldnn_rnn_layer


class Fused(TorchFunctionMode):
    """A mode that runs dropout, attention, RMS norms, linear layers, LSTMs and GRUs on meta as fused operators."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the function, or its replacement if its first argument is on meta."""
        args, kwargs = autocast.cast(func, args, kwargs or {})
        replacement = _REPLACEMENTS.get(func)
        if replacement is not None and args and isinstance(args[0], Tensor) and args[0].device.type == "meta":
            return replacement(func, *args, **kwargs)
        return func(*args, **kwargs)


@contextmanager
def fused() -> Iterator[None]:
    """Enters :class:`Fused`, and autocast on meta.

    Also replaces two functions in ``torch.nn.functional``, because a mode does not see the calls inside of PyTorch's
    function for multi-head attention. Not thread-safe.
    """
    originals = {name: getattr(functional, name) for name in ("scaled_dot_product_attention", "linear")}

    def replace(original: Any, replacement: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = autocast.cast(original, args, kwargs)
            if args and isinstance(args[0], Tensor) and args[0].device.type == "meta":
                return replacement(original, *args, **kwargs)
            return original(*args, **kwargs)

        return call

    for name, original in originals.items():
        setattr(functional, name, replace(original, _REPLACEMENTS[original]))
    try:
        with autocast.emulated(), Fused():
            yield
    finally:
        for name, original in originals.items():
            setattr(functional, name, original)


# The functions below replace those of PyTorch in _REPLACEMENTS. `original` is the replaced function.


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


# The operators openreg_predict::* compute nothing: their results only have the right shapes. work.py and
# operator_classes.py look up their work (FLOP and bytes) by name. Reports show the names in NAMES instead.


@torch.library.custom_op("openreg_predict::rms_norm", mutates_args=(), device_types="meta")
def _fused_rms_norm(source: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(source), source.new_empty(*source.shape[: -weight.dim()], *[1] * weight.dim())


@torch.library.custom_op("openreg_predict::rms_norm_backward", mutates_args=(), device_types="meta")
def _fused_rms_norm_backward(gradient: Tensor, source: Tensor, root: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    del gradient, root
    return torch.empty_like(source), torch.empty_like(weight)


def _save_rms_norm(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(inputs[0], output[1], inputs[1])


def _rms_norm_gradients(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _fused_rms_norm_backward(gradient, *ctx.saved_tensors)
    return result


_fused_rms_norm.register_autograd(_rms_norm_gradients, setup_context=_save_rms_norm)


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
def _fused_linear_backward(source: Tensor, gradient: Tensor, weight: Tensor, output_mask: list[bool]) -> list[Tensor]:
    del gradient
    shapes = [source.shape, weight.shape, weight.shape[:1]]
    return [source.new_empty(shape) for shape, is_needed in zip(shapes, output_mask, strict=True) if is_needed]


def _save_linear(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    del output
    ctx.save_for_backward(inputs[0], inputs[1])


def _linear_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    output_mask = list(ctx.needs_input_grad[:3])
    found = iter(_fused_linear_backward(ctx.saved_tensors[0], gradient, ctx.saved_tensors[1], output_mask))
    return tuple(next(found) if is_needed else None for is_needed in output_mask)


_fused_linear.register_autograd(_linear_gradients, setup_context=_save_linear)


def _linear(original: Any, source: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """Runs a linear layer as one operator if its input has three dimensions or more and is not contiguous.

    On meta, PyTorch copies such an input; the device does not.
    """
    if source.dim() < 3 or source.is_contiguous():
        return original(source, weight, bias)
    return _fused_linear(source, weight, bias)


def _lstm(original: Any, source: Tensor, *args: Any) -> Any:
    """Runs an LSTM with one operator per layer and direction.

    Calls the original for packed sequences, projections and layers without biases.
    """
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
    """Runs a GRU with a fused cell per step. Calls the original for packed sequences and layers without biases."""
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


_REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    functional.dropout: _dropout,
    functional.scaled_dot_product_attention: _attention,
    torch.rms_norm: _rms_norm,
    functional.rms_norm: _rms_norm,
    torch.lstm: _lstm,
    torch.gru: _gru,
    functional.linear: _linear,
}
# Operator of this module: the operator that reports show in its place.
NAMES = {
    "openreg_predict::linear": "aten::linear",
    "openreg_predict::linear_backward": "aten::linear_backward",
    "openreg_predict::rms_norm": "aten::_fused_rms_norm",
    "openreg_predict::rms_norm_backward": "aten::_fused_rms_norm_backward",
}


def _workspace(length: int, batch: int, inputs: int, width: int) -> int:
    """Returns the bytes that the openreg device allocates for the backward pass of an LSTM layer.

    This is an upper bound, because the layout is internal to oneDNN. rnn_layer.cpp of openreg-ops computes the same
    bound.
    """

    def padded(count: int) -> int:
        return -(-count // 16) * 16 + 16

    gates = length * (padded(4 * width) + 4 * padded(width))
    states = 8 * (length + 1) * padded(max(inputs, width))
    return 64 + (1 << 16) + 4 * batch * (gates + states)


def run_on_meta(name: str, args: tuple[Any, ...]) -> Any:
    """Returns the results of a recurrent operator, or None for any other.

    PyTorch has no meta function for the GRU cell, and that of LSTM layers returns an empty workspace.
    """
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
