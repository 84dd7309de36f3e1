# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's fake tensors, with which ``torch.compile`` and ``torch.export`` trace, do not know of this device.

PyTorch has the rules of convolution's memory format in C++, by device, and none for a backend's own convolution. Of
operators of recurrent cells, which only accelerators call, two lack functions for shapes, and that of one fails for
cells without biases.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import openreg_runtime


def _gru_cell(
    input_gates: Tensor,  # noqa: ARG001
    hidden_gates: Tensor,  # noqa: ARG001
    hx: Tensor,
    input_bias: Tensor | None = None,  # noqa: ARG001
    hidden_bias: Tensor | None = None,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    """The next state, and a workspace of five numbers for each number of the state."""
    return hx.new_empty(hx.shape), hx.new_empty((hx.shape[0], 5 * hx.shape[1]))


def _gru_cell_backward(
    grad: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Gradients of the gates of the input and of the state, of the state, and of the two biases."""
    gates = 3 * grad.shape[1]
    of_gates = [workspace.new_empty((grad.shape[0], gates)) for _ in range(2)]
    of_biases = [workspace.new_empty(gates) if has_bias else None for _ in range(2)]
    return of_gates[0], of_gates[1], grad.new_empty(grad.shape), of_biases[0], of_biases[1]


def _convolution(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Convolution of this device's fake tensors: what the CPU's would be, since its kernel is what runs."""
    tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    devices = {tensor.device for tensor in tensors}
    device = devices.pop()
    if device.type != "openreg" or devices:
        return NotImplemented  # PyTorch goes on as without this function

    def moved(tensor: Tensor, to: torch.device) -> Tensor:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=to)

    with fake_mode:
        args, kwargs = pytree.tree_map_only(Tensor, lambda tensor: moved(tensor, torch.device("cpu")), (args, kwargs))
        return pytree.tree_map_only(Tensor, lambda tensor: moved(tensor, device), func(*args, **kwargs))


def _lstm_cell(fake_mode: Any, func: Any, *operands: Tensor | None) -> Any:  # noqa: ARG001  (PyTorch's form)
    """The next hidden state and cell state, and the gates."""
    input_gates, _, cx = operands[:3]
    assert input_gates is not None
    assert cx is not None
    with fake_mode:
        return cx.new_empty(cx.shape), cx.new_empty(cx.shape), input_gates.new_empty(input_gates.shape)


def _add_rules(fake_impls: ModuleType) -> None:
    aten = torch.ops.aten
    convolutions = {aten.convolution.default, aten._convolution.default, aten.convolution_backward.default}
    cells = {aten._thnn_fused_lstm_cell.default}
    # The first that answers is taken, and PyTorch's own answers for every device.
    fake_impls.op_implementations_checks.insert(0, (convolutions.__contains__, _convolution))
    fake_impls.op_implementations_checks.insert(0, (cells.__contains__, _lstm_cell))


torch.library.impl("aten::_thnn_fused_gru_cell", "meta", _gru_cell)
torch.library.impl("aten::_thnn_fused_gru_cell_backward", "meta", _gru_cell_backward)
openreg_runtime.after_import("torch._subclasses.fake_impls", _add_rules)
