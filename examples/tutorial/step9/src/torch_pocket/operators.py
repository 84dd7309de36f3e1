# SPDX-License-Identifier: BSD-3-Clause
"""Operators from Python, and the Python part of operators from C++."""

import torch

# The gradient of an operator whose kernel is C++ (csrc/cube.cpp).


def _keep_input(ctx, inputs, output):  # PyTorch passes these arguments by name
    ctx.save_for_backward(*inputs)


def _soft_step_gradient(context, grad):
    (x,) = context.saved_tensors
    return grad / (1 + x.abs()).square()


torch.library.register_autograd("pocket::soft_step", _soft_step_gradient, setup_context=_keep_input)
torch.library.register_fake("pocket::soft_step", lambda x: torch.empty_like(x, memory_format=torch.contiguous_format))


# An operator in Python alone. Its schema is read from the annotations.


@torch.library.custom_op("pocket::gate", mutates_args=(), device_types="pocket")
def gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns x times the sigmoid of y."""
    return x * torch.sigmoid(y)


@gate.register_fake
def _(x, y):
    return x * torch.sigmoid(y)  # of tensors without data: shape, dtype and strides follow the same rules


def _gate_gradient(context, grad):
    x, y = context.saved_tensors
    open_part = torch.sigmoid(y)
    return grad * open_part, grad * x * open_part * (1 - open_part)


gate.register_autograd(_gate_gradient, setup_context=_keep_input)


class ReverseGradient(torch.autograd.Function):
    """Returns its input, and reverses the sign of the gradient."""

    @staticmethod
    def forward(context, x):
        """Returns a tensor over the same memory."""
        return x.view_as(x)

    @staticmethod
    def backward(context, grad):
        """Returns the negative gradient."""
        return -grad
