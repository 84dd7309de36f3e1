# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives refuse or broadcast operands of the wrong size, and never read outside of an operand."""

from contextlib import suppress

import pytest
import torch
from parity import DEVICE
from structured_samples import OPTIONS, make_samples
from test_operand_dtypes import BY_HAND, DERIVATIVES, overload
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = [pytest.mark.no_fallback, pytest.mark.filterwarnings("ignore:.*deprecated")]

TABLE = {name for name in make_samples() if "backward" in name}
BY_NAME = {name: call for name, call in {**BY_HAND, **DERIVATIVES}.items() if "backward" in name}
# Where users call an operator of another name, which the device's runs behind.
CALLED = {
    "convolution_backward_overrideable": "convolution_backward",
    "huber_loss_backward.out": "huber_loss_backward",
}
TAIL = 4096  # elements behind an operand


class Recorded(TorchDispatchMode):
    """The last call of an operator."""

    def __init__(self, operator):
        super().__init__()
        self.operator = operator
        self.call = None

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator is self.operator:
            self.call = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs or {}))
        return operator(*args, **(kwargs or {}))


def call_of(name):
    """Operands that fit, on the CPU, which has all kernels but that of linear_backward."""
    if name in TABLE:
        return make_samples()[name][0], OPTIONS.get(name, {})
    with Recorded(overload(CALLED.get(name, name))) as recorded, suppress(NotImplementedError):
        BY_NAME[name](torch.ones(3))
    return recorded.call


def fenced(tensor):
    """A copy on the device, behind which numbers stand that show in every result, or lead to no element. Indices are
    zero, which is the index of an element whatever the sizes: what the data decide is not the subject."""
    fence = float("nan") if tensor.is_floating_point() else torch.iinfo(torch.int32).max
    tensor = tensor if tensor.is_floating_point() or tensor.dtype == torch.bool else torch.zeros_like(tensor)
    buffer = torch.full((tensor.numel() + TAIL,), fence, dtype=tensor.dtype)
    buffer[: tensor.numel()] = tensor.flatten()
    return buffer.to(DEVICE)[: tensor.numel()].view(tensor.shape)


def misfits(tensor):
    """The tensor with other sizes: one more and one fewer, none, a dimension more and fewer."""
    for dim, size in enumerate(tensor.shape):
        yield f"shorter by one in dimension {dim}", tensor.narrow(dim, 0, size - 1) if size else tensor
        yield f"longer by one in dimension {dim}", torch.cat([tensor, tensor.narrow(dim, 0, min(size, 1))], dim)
        yield f"empty in dimension {dim}", tensor.narrow(dim, 0, 0)
    yield "with a dimension more", tensor.unsqueeze(0)
    if tensor.dim():
        yield "with a dimension fewer", tensor.select(0, 0) if tensor.size(0) else tensor.flatten()


@pytest.mark.parametrize("name", sorted(TABLE | set(BY_NAME)))
def test_operands_that_do_not_fit_are_refused_or_broadcast(name):
    leaves, structure = pytree.tree_flatten(call_of(name))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.numel()]
    assert places
    has_indices = any(leaves[place].dtype == torch.int64 for place in places)
    for place in places:
        for change, operand in misfits(leaves[place]):
            if has_indices and operand.numel() == 0:
                continue  # no index leads to an element, and the data decide
            given = [fenced(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            given[place] = fenced(operand)
            args, kwargs = pytree.tree_unflatten(given, structure)
            try:
                results = overload(CALLED.get(name, name))(*args, **kwargs)
            except (RuntimeError, IndexError, ValueError):
                torch.openreg.synchronize()
                continue
            for result in pytree.tree_leaves(results):
                if isinstance(result, torch.Tensor) and result.is_floating_point():
                    assert not result.isnan().any(), f"operand {place} {change}: read beyond its end"


@pytest.mark.parametrize("device", ["cpu", DEVICE])
@pytest.mark.parametrize(
    ("size", "step", "error", "text"),
    [(3, 0, ValueError, "step is 0 but must be > 0"), (-1, 1, RuntimeError, "size is -1 but must be >= 0")],
)
def test_windows_without_a_step_or_a_size_are_refused_as_on_the_cpu(device, size, step, error, text):
    with pytest.raises(error, match=text):
        torch.ops.aten.unfold_backward(torch.ones(2, 3, device=device), [6], 0, size, step)
