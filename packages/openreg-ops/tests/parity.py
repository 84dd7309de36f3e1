# SPDX-License-Identifier: BSD-3-Clause
"""Compares an operation on the device with the same one on the CPU."""

import pytest
import torch
from torch.utils import _pytree as pytree

from openreg_testing.budgets import count_launches

DEVICE = "openreg"


def move(tensor, device):
    """A copy elsewhere with the same sizes, strides, offset and requires_grad."""
    base = tensor.detach()
    count = base.untyped_storage().nbytes() // base.element_size()
    flat = base.as_strided((count,), (1,), 0).to(device, copy=True)
    moved = flat.as_strided(base.size(), base.stride(), base.storage_offset())
    return moved.requires_grad_(tensor.requires_grad)


def move_all(values, device):
    """The same for all tensors in nested tuples, lists and dictionaries."""
    return pytree.tree_map_only(torch.Tensor, lambda tensor: move(tensor, device), values)


def tensors_in(values):
    return [value for value in pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]


def assert_same(ours, reference, *, strides=True, **tolerance):
    """Values, dtypes, shapes and strides are the same, and ours are on the device."""
    mine, theirs = pytree.tree_leaves(ours), pytree.tree_leaves(reference)
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        if isinstance(other, torch.Tensor):
            assert one.device.type == DEVICE
            if strides and other.numel() > 1:
                assert one.stride() == other.stride()
            one, other = one.detach().cpu(), other.detach()
        torch.testing.assert_close(one, other, equal_nan=True, **tolerance)


def gradients(result, inputs):
    """Of all differentiable inputs, for fixed gradients of the results."""
    outputs = [tensor for tensor in tensors_in(result) if tensor.requires_grad]
    weights = [torch.linspace(-1, 1, t.numel(), dtype=t.dtype).view(t.shape).to(t.device) for t in outputs]
    wanted = [tensor for tensor in tensors_in(inputs) if tensor.requires_grad]
    return torch.autograd.grad(outputs, wanted, weights, allow_unused=True)


def check(operation, *args, device=DEVICE, strides=True, tolerance=None, **kwargs):
    """Runs `operation` on both, forward, and backward where an input requires a gradient; returns our result."""
    inputs = (args, kwargs)
    theirs, mine = move_all(inputs, "cpu"), move_all(inputs, device)
    reference = operation(*theirs[0], **theirs[1])
    result = operation(*mine[0], **mine[1])
    assert_same(result, reference, strides=strides, **(tolerance or {}))
    if any(tensor.requires_grad for tensor in tensors_in(inputs)):
        assert_same(gradients(result, mine), gradients(reference, theirs), strides=False, **(tolerance or {}))
    return result


def check_failure(operation, *values):
    """What the CPU refuses the device does on the calling line, with the same type of error and in the same words."""
    outcomes = []
    for device in ("cpu", DEVICE):
        with pytest.raises((RuntimeError, IndexError, TypeError, ValueError), match=r".") as caught:
            operation(*move_all(values, device))
        outcomes.append((caught.type, str(caught.value).splitlines()[0].replace(f"{DEVICE}:0", "cpu")))
    assert outcomes[1] == outcomes[0], outcomes
    torch.openreg.synchronize()


def launches_of(operation):
    """Kernels and copies that an operation enqueues."""
    with count_launches() as count:
        operation()
    return count.launches, count.copies


def is_busy(device=0):
    """Whether the current stream of a device still has work."""
    return not torch.openreg.current_stream(device).query()
