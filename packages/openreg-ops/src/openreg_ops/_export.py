# SPDX-License-Identifier: BSD-3-Clause
"""Makes ``ExportedProgram.run_decompositions()`` decompose operators that have kernels for this device.

PyTorch decomposes composite operators by autograd. It does not decompose a composite operator with a kernel for the
device, such as ``aten::linear``. That operator stays in the graph, and ``torch.onnx.export`` and other consumers of
core ATen do not support it. For its own devices, PyTorch has a list of dispatch keys to override
(``_BACKEND_KEYS_TO_OVERRIDE``). For this device, this file passes the decompositions to the tracer.

On accelerators, PyTorch calls other operators in place of some composite ones: the cells of LSTM and GRU, and
attention. This file contains decompositions of these.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

import openreg_runtime

_Table = dict[Any, Callable[..., Any]]


def _is_overridden(operator: Any) -> bool:
    """Returns True if an operator is composite and nevertheless has a kernel for this device."""
    if not isinstance(operator, torch._ops.OpOverload):
        return False
    name = str(operator.name())  # type: ignore[no-untyped-call]
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return has(name, "CompositeImplicitAutograd") and has(name, "PrivateUse1")


def _sum(*terms: Tensor | None) -> Tensor:
    """Returns the sum of the terms that are not None. The first one is a tensor."""
    first, *others = (term for term in terms if term is not None)
    for term in others:
        first = first + term
    return first


def _lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the next hidden and cell state, and the gates, as ``csrc/operators/recurrent/rnn_cell.cpp`` does."""
    gates = _sum(input_gates, hidden_gates, input_bias, hidden_bias).chunk(4, 1)
    enter, forget, output = (gates[index].sigmoid() for index in (0, 1, 3))
    cell = gates[2].tanh()
    cy = forget * cx + enter * cell
    return output * cy.tanh(), cy, torch.cat((enter, forget, cell, output), 1)


def _gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns the next state and a workspace, as ``csrc/operators/recurrent/rnn_cell.cpp`` does."""
    of_input = _sum(input_gates, input_bias).chunk(3, 1)
    of_hidden = _sum(hidden_gates, hidden_bias).chunk(3, 1)
    reset, update = ((of_input[index] + of_hidden[index]).sigmoid() for index in (0, 1))
    new = (of_input[2] + reset * of_hidden[2]).tanh()
    return new + update * (hx - new), torch.cat((reset, update, new, hx, of_hidden[2]), 1)


def _log_sums(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """Returns the logarithm of the sum of the exponentials of each row of scores.

    ``torch.export`` removes it from a graph without a backward pass, because nothing uses it there.
    """
    key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = query @ key.transpose(-2, -1)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if mask is not None:
        scores = scores + _additive(mask, scores)
    return scores.logsumexp(-1)


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """Returns the mask as numbers to add to the scores; for a bool mask, these are 0 and -infinity."""
    if mask.dtype != torch.bool:
        return mask
    return like.new_zeros(mask.shape).masked_fill(mask.logical_not(), float("-inf"))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    """Computes attention by PyTorch's formula.

    Returns NotImplemented, so that the operator stays, with dropout or for a debug mask. With dropout its backward pass
    has to draw the random numbers of its forward pass.
    """
    if dropout_p > 0 or return_debug_mask:
        return NotImplemented
    shares_keys = query.shape[-3] != key.shape[-3]
    mask = mask if mask is None else _additive(mask, query)
    output, _ = torch.ops.aten._scaled_dot_product_attention_math(
        query, key, value, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=shares_keys
    )
    log_sums = _log_sums(query, key, mask, is_causal, scale)
    unused = query.new_zeros((), dtype=torch.long)
    return output, log_sums, None, None, query.shape[-2], key.shape[-2], unused, unused, None


def _of_accelerators(table: _Table) -> _Table:
    """Returns the decompositions of those operators whose composite counterparts `table` decomposes."""
    aten = torch.ops.aten
    stands_for: dict[Any, tuple[Any, Callable[..., Any]]] = {
        aten._thnn_fused_lstm_cell.default: (aten.lstm_cell.default, _lstm_cell),
        aten._thnn_fused_gru_cell.default: (aten.gru_cell.default, _gru_cell),
        aten._scaled_dot_product_fused_attention_overrideable.default: (
            aten.scaled_dot_product_attention.default,
            _attention,
        ),
    }
    return {operator: rule for operator, (composite, rule) in stands_for.items() if composite in table}


def _keep_decompositions(exported_program: ModuleType) -> None:
    """Replaces the function of PyTorch that decides which decompositions autograd and the tracer apply."""
    split: Callable[[_Table], tuple[_Table, _Table]] = exported_program._split_decomp_table_to_cia_and_python_decomp

    def split_here(table: _Table) -> tuple[_Table, _Table]:
        """Returns the decompositions that autograd applies, and those that the tracer applies afterwards."""
        left = {operator: rule for operator, rule in table.items() if _is_overridden(operator)}
        left |= _of_accelerators(table)
        of_autograd, of_tracer = split(table)
        return of_autograd, {**left, **of_tracer}

    exported_program._split_decomp_table_to_cia_and_python_decomp = split_here  # type: ignore[attr-defined]


openreg_runtime.after_import("torch.export.exported_program", _keep_decompositions)
