# SPDX-License-Identifier: BSD-3-Clause
"""Shows one operator of each kind; the exit status tells whether all of it is right."""

import itertools
import warnings

import torch
import torch_pocket  # noqa: F401 - makes the device known to PyTorch
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)
norm = torch.ops.aten.native_layer_norm.default


class Calls(TorchDispatchMode):
    """Keeps the names of the operators that are called, below autograd."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def close(ours, expected):
    """Compares two results, undefined gradients included."""
    assert (ours is None) == (expected is None)
    if ours is not None:
        torch.testing.assert_close(ours.cpu(), expected, check_stride=True)


def moved(values):
    """Gives operands for the device, of which some may be None."""
    return [None if value is None else value.detach().to("pocket").requires_grad_() for value in values]


for with_weight, with_bias in ((True, True), (True, False), (False, True), (False, False)):
    weight = torch.randn(3, 4) if with_weight else None
    bias = torch.randn(3, 4) if with_bias else None
    operands = [torch.randn(2, 3, 4), weight, bias]
    on_cpu = [None if value is None else value.clone().requires_grad_() for value in operands]
    ours = moved(operands)
    results = [norm(x, (3, 4), w, b, 1e-5) for x, w, b in (ours, on_cpu)]
    for device, cpu in zip(*results, strict=True):
        close(device.detach(), cpu.detach())
    with Calls() as calls:
        results[0][0].square().sum().backward()
    results[1][0].square().sum().backward()
    for device, cpu in zip(ours, on_cpu, strict=True):
        close(None if device is None else device.grad, None if cpu is None else cpu.grad)
assert "aten.native_layer_norm_backward.default" in calls.names
print("three outputs, tensors that may be missing, and the backward operator that PyTorch's derivative calls")

half = torch.randn(5, 8, dtype=torch.half, device="pocket")
for device, meta in zip(norm(half, (8,), None, None, 1e-5), norm(half.to("meta"), (8,), None, None, 1e-5), strict=True):
    assert (device.dtype, device.shape, device.stride()) == (meta.dtype, meta.shape, meta.stride())
layer = torch.nn.LayerNorm(4, device="pocket", dtype=torch.double)
assert torch.autograd.gradcheck(layer, torch.randn(2, 4, dtype=torch.double, device="pocket", requires_grad=True))
print("sizes, strides and dtypes are those of Meta, and the gradient is the slope")

x = torch.tensor([[0.0, 1.5, -8.0], [3.0, 0.0, float("inf")]])
y = x.to("pocket")
for ours, expected in zip(torch.frexp(y.t()), torch.frexp(x.t()), strict=True):
    close(ours, expected)
print("frexp is made of its out= overload")

mask = torch.tensor([True, False, True])
close(y.clone().masked_fill_(mask.to("pocket"), 7), x.clone().masked_fill_(mask, 7))
close(y.masked_fill(mask.to("pocket"), 7), x.masked_fill(mask, 7))
with warnings.catch_warnings(record=True) as caught:
    wide, expected = y[0, :1].clone().expand(3), x[0, :1].clone().expand(3)
    assert torch.equal(wide.masked_fill_(mask.to("pocket"), 7).cpu(), expected.masked_fill_(mask, 7))
assert "expanded tensors" in str(caught[0].message)
print("masked_fill is made of its in-place overload")

z = torch.randn(2, 3, 4)
w = z.to("pocket")
choices = [None, *(list(dims) for length in range(4) for dims in itertools.permutations(range(3), length))]
sums = [w.nansum(dims) for dims in choices]  # all are launched before the host waits for one
stacks = [torch.stack([w] * count, -1) for count in range(1, 20)]
for ours, dims in zip(sums, choices, strict=True):
    close(ours, z.nansum(dims))
for count, ours in enumerate(stacks, 1):
    close(ours, torch.stack([z] * count, -1))
close(y.nansum(0, True, dtype=torch.double), x.nansum(0, True, dtype=torch.double))
close(torch.stack([y, y > 1]), torch.stack([x, x > 1]))
print("a kernel owns the lists that it reads")

close(y.isfinite(), x.isfinite())
with Calls() as calls:
    y.isfinite()
assert calls.names == ["aten.isfinite.default"]
print("a composite operator is one launch")

close(y.nonzero(), x.nonzero())
assert y.new_zeros(2, 2).nonzero().shape == (0, 2)
close(y[y > 1], x[x > 1])
print("the number of elements decides the size of the result")

indices = torch.tensor([[0, 1, 0], [2, 0, 2]])
values = torch.tensor([1.0, 2.0, 3.0])
sparse = torch.sparse_coo_tensor(indices, values, (2, 3), check_invariants=True)
ours = torch.sparse_coo_tensor(indices.to("pocket"), values.to("pocket"), (2, 3), check_invariants=True)
assert (ours.layout, ours.device.type, ours.is_coalesced()) == (torch.sparse_coo, "pocket", False)
close(ours.to_dense(), sparse.to_dense())
close(y.to_sparse().to_dense(), x)
print("a sparse tensor is two dense ones")


def rejected(what, work, message):
    said = "nothing"
    try:
        work()
    except RuntimeError as error:
        said = str(error).splitlines()[0]
    assert message in said, f"{what}: {said}"
    print(f"{what} is rejected:", said)


rejected("a weight on the CPU", lambda: norm(y, (3,), torch.ones(3), None, 1e-5), "expected all tensors on pocket:0")
rejected("a weight of another size", lambda: norm(y, (3,), y[0, :2], None, 1e-5), "sizes [3]")
rejected("a wrong shape", lambda: norm(y, (2,), None, None, 1e-5), "whose last sizes are [2]")
grads = (y, y, (3,), *norm(y, (3,), None, None, 1e-5)[1:], None, None, [True, False, False])
back = torch.ops.aten.native_layer_norm_backward
rejected("a gradient of another size", lambda: back(y[:1], *grads[1:]), "expected grad of dtype Float and sizes [2, 3]")
rejected("a mean of another dtype", lambda: back(*grads[:3], grads[3].double(), *grads[4:]), "expected mean of dtype")
rejected("a dimension that is there twice", lambda: y.nansum([0, 0]), "dim 0 appears multiple times")
rejected("a list with a tensor on the CPU", lambda: torch.stack([y, x]), "expected all tensors on pocket:0")
rejected("a list of different sizes", lambda: torch.stack([y, y[0]]), "stack expects each tensor to be equal size")
rejected("a mask of numbers", lambda: y.masked_fill(y, 7), "a mask of dtype Bool")
flags = torch.zeros(4, dtype=torch.bool, device="pocket")
rejected("a mask that is part of the operand", lambda: flags[1:].masked_fill_(flags[:-1], True), "memory location")
rejected("a number that the dtype lacks", lambda: y.byte().masked_fill_(mask.to("pocket"), 300), "without overflow")
rejected("a dtype without a kernel", lambda: norm(y.int(), (3,), None, None, 1e-5), "not implemented for 'Int'")
