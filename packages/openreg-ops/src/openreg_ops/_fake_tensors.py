# SPDX-License-Identifier: BSD-3-Clause
"""Registers meta functions that PyTorch lacks, for the fake tensors of ``torch.compile`` and ``torch.export``.

PyTorch chooses the memory format of a convolution's results in C++, by device, and has no rule for the convolution of a
backend. Two operators of recurrent cells, which only accelerators call, have no meta function. The meta function of a
third one fails for cells without biases.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format
from torch.utils import _pytree as pytree

import openreg_runtime


def _gru_cell(
    input_gates: Tensor,  # noqa: ARG001
    hidden_gates: Tensor,  # noqa: ARG001
    hx: Tensor,
    input_bias: Tensor | None = None,  # noqa: ARG001
    hidden_bias: Tensor | None = None,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    """Returns the next state, and a workspace with five numbers for each number of the state."""
    return hx.new_empty(hx.shape), hx.new_empty((hx.shape[0], 5 * hx.shape[1]))


def _gru_cell_backward(
    grad: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Returns the gradients of input_gates, hidden_gates, hx, input_bias and hidden_bias."""
    gates = 3 * grad.shape[1]
    of_gates = [workspace.new_empty((grad.shape[0], gates)) for _ in range(2)]
    of_biases = [workspace.new_empty(gates) if has_bias else None for _ in range(2)]
    return of_gates[0], of_gates[1], grad.new_empty(grad.shape), of_biases[0], of_biases[1]


def _convolution(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the fake results of a convolution: the CPU's shapes, in the memory format that the device's kernel uses.

    The memory format of the CPU can differ, because it has kernels for channels last only for some dtypes, sizes and
    numbers of threads. Returns NotImplemented unless all tensors are on one openreg device.
    """
    tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    devices = {tensor.device for tensor in tensors}
    device = devices.pop()
    if device.type != "openreg" or devices:
        return NotImplemented  # PyTorch then uses its own rule
    given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs

    def on_the_cpu(tensor: Tensor) -> Tensor:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")

    with fake_mode:
        memory_format = _memory_format(given["input"], given["weight"], given["transposed"])
        args, kwargs = pytree.tree_map_only(Tensor, on_the_cpu, (args, kwargs))
        results = func(*args, **kwargs)
        return pytree.tree_map_only(Tensor, lambda result: _laid_out(result, device, memory_format), results)


def _memory_format(image: Tensor, weight: Tensor, transposed: bool) -> torch.memory_format:
    """Returns the memory format of a convolution's results, as output_format() in convolution.cpp does."""
    if image.dim() == 3:  # a one-dimensional convolution is computed on images of one line
        image, weight = image.contiguous().unsqueeze(2), weight.unsqueeze(2)
    if transposed and image.dim() == 5:
        return torch.contiguous_format
    memory_format: torch.memory_format = suggest_memory_format(image)
    return suggest_memory_format(weight) if memory_format is torch.contiguous_format else memory_format


def _laid_out(tensor: Tensor, device: torch.device, memory_format: torch.memory_format) -> Tensor:
    """Returns an empty tensor on `device`, in `memory_format`, for one of a convolution's results."""
    if tensor.dim() < 3:  # the gradient of a bias
        return torch.empty_like(tensor, device=device)
    size = tensor.unsqueeze(2).size() if tensor.dim() == 3 else tensor.size()
    result = torch.empty(size, dtype=tensor.dtype, device=device, memory_format=memory_format)
    return result.squeeze(2) if tensor.dim() == 3 else result


def _lstm_cell(fake_mode: Any, func: Any, *operands: Tensor | None) -> Any:  # noqa: ARG001  (PyTorch's signature)
    """Returns the next hidden state, the next cell state, and the gates."""
    input_gates, _, cx = operands[:3]
    assert input_gates is not None
    assert cx is not None
    with fake_mode:
        return cx.new_empty(cx.shape), cx.new_empty(cx.shape), input_gates.new_empty(input_gates.shape)


def _add_rules(fake_impls: ModuleType) -> None:
    """Adds the functions for fake tensors that need more than a meta function."""
    aten = torch.ops.aten
    convolutions = {aten.convolution.default, aten._convolution.default, aten.convolution_backward.default}
    cells = {aten._thnn_fused_lstm_cell.default}
    # PyTorch uses the first rule that matches, and its own rules match every device.
    fake_impls.op_implementations_checks.insert(0, (convolutions.__contains__, _convolution))
    fake_impls.op_implementations_checks.insert(0, (cells.__contains__, _lstm_cell))


torch.library.impl("aten::_thnn_fused_gru_cell", "meta", _gru_cell)
torch.library.impl("aten::_thnn_fused_gru_cell_backward", "meta", _gru_cell_backward)
openreg_runtime.after_import("torch._subclasses.fake_impls", _add_rules)
