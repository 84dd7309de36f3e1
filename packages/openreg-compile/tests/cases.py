# SPDX-License-Identifier: BSD-3-Clause
"""Functions of each kind that a compiler treats differently, with inputs on the CPU, and their graph breaks."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

CASES = {}


def case(*inputs, dynamic=None, fullgraph=True):
    """Registers a function with the inputs that it is called with; of several sets each is given in turn."""

    def register(function):
        sets = inputs if inputs and isinstance(inputs[0], tuple) else (inputs,)
        CASES[function.__name__] = (function, sets, {"dynamic": dynamic, "fullgraph": fullgraph})
        return function

    return register


def numbers(*sizes, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(sizes))
    values = torch.randn(sizes, generator=generator)
    if dtype.is_floating_point:
        return values.to(dtype)
    if dtype == torch.bool:
        return values > 0
    return (values * 4).to(dtype)


@case(numbers(64, 33), numbers(64, 33, seed=1))
def pointwise(x, y):
    return functional.gelu(x * y + 1) - torch.where(x > 0, x.exp(), y).clamp(-3, 3)


@case(numbers(4, 1, 5), numbers(3, 1), numbers(5))
def broadcasting(x, y, z):
    return x + y * z


@case(numbers(5, 7, 3))
def reductions(x):
    return x.sum((0, 2)), x.amax(1), x.mean(), x.argmin(2), x.prod(0), (x > 0).any(-1), x.logsumexp(1)


@case(numbers(3, 1100))
def welford(x):
    return torch.var_mean(x, 1), x.std(), functional.layer_norm(x, (1100,))


@case(numbers(9, 13))
def variances(x):
    few = torch.var_mean(x, (0, 1), keepdim=True, correction=0), torch.var_mean(x, 0, correction=8)
    return few, x.std(1), functional.layer_norm(x, (13,)), x.double().var(-1, correction=2.5)


@case(numbers(5, 7, dtype=torch.int64))
def positions(x):
    x = x.float()  # with several of the greatest and the least
    turned = x.t() + 1
    return x.argmax(), turned.argmax(), turned.argmin(keepdim=True), x.permute(1, 0).flip(0).argmin(), turned.argmax(1)


@case((numbers(3, 5),), (numbers(6, 4),), dynamic=True)
def positions_of_any_size(x):
    return (x.t() * 2).argmax(), torch.var_mean(x, 1)


@case(numbers(6, 1000))
def softmaxes(x):
    return x.softmax(-1), x.log_softmax(0)


@case(numbers(8, 8))
def views(x):
    return x.t()[2:, ::2].flip(0), x.view(4, 16).narrow(1, 3, 5), x.unfold(0, 3, 2), x.diagonal(1) + 1


@case(numbers(6, 5))
def a_view_of_the_input(x):
    return x.view(30), x.t(), x + 1


@case(numbers(3, 4), numbers(2, 4), numbers(3, 4))
def joining(x, y, z):
    return torch.cat([x, y, z * 2]), torch.stack([x, z], 1).sin(), functional.pad(x, (1, 2, 0, 3), value=0.5) + 1


@case(numbers(2, 3, 6, 6))
def padding(x):
    reflected = functional.pad(x, (2, 1, 1, 2), mode="reflect")
    return reflected.relu(), functional.pad(x, (1, 1, 1, 1), mode="replicate") * 2


@case(numbers(10, 4), torch.tensor([3, 0, 9, 3]))
def gathering(x, index):
    return x[index] * 2, x.index_select(0, index).sum(1), x.gather(0, index.view(1, 4))


@case(numbers(10, 4), torch.tensor([3, 0, 9, 3]), numbers(4, 4))
def scattering(x, index, values):
    added = x.index_add(0, index, values)
    put = x.index_put((index[:2],), values[:2])
    return added, put, x.scatter_add(0, index.view(4, 1).expand(4, 4), values), x.scatter(1, index[1:2].view(1, 1), 7.0)


@case(numbers(10, 4), torch.tensor([3, 0, 9, 3]), numbers(4, 4))
def sums_at_indices(x, index, values):
    rows = index.view(4, 1).expand(4, 4)
    alone = x.scatter_reduce(0, rows, values * 2, "sum", include_self=False)
    return alone + 1, x.scatter_reduce(0, rows, values, "amax"), x.long().scatter_add(0, rows, values.long())


@case(numbers(12, dtype=torch.int64), numbers(12, dtype=torch.int32), numbers(12, dtype=torch.bool))
def whole_numbers(x, y, flags):
    return x // 3, x % 5, (x + y) * 2, x << 1, flags & (y > 0), x.float() / 2, x.to(torch.uint8), (x > y).sum()


@case(numbers(40, dtype=torch.float16), numbers(40, dtype=torch.bfloat16), numbers(40, dtype=torch.float64))
def mixed_dtypes(x, y, z):
    return x * 2 + 1, y.exp().sum(), x + y.float(), z.sin() * x, (x.float() * y).to(torch.bfloat16)


@case(numbers(7, 9)[:, 1:], numbers(9, 7).t()[:, 1:], numbers(130)[1:])
def strides_and_offsets(x, y, z):
    return x * 2 + y.t()[:7].sum(), y.relu(), z.cumsum(0) + 1, z.sum()


@case((numbers(4, 6),), (numbers(7, 6),), (numbers(31, 6),), dynamic=True)
def any_size(x):
    return (x * x.shape[0]).relu().sum(1), x.view(-1)[: x.shape[0]] + x.shape[1]


@case(numbers(20))
def sizes_from_data(x):
    return x.masked_fill(x > 0, 1.0), torch.where(x > 0, x, 0.0).sum()


@case(numbers(5, 5), numbers(5, 5))
def mutation(x, y):
    x.add_(y).mul_(2)
    y[1:3].zero_()
    return x.sum() + y.sum()


@case(numbers(6, 6))
def mutated_view(x):
    row = x[2]
    row += 1
    x.t()[0].sin_()
    return x * 2


@case(numbers(8, 16), numbers(32, 16), numbers(32))
def linear(x, weight, bias):
    return functional.gelu(functional.linear(x, weight, bias)).sum(0)


@case(numbers(2, 5, 7), numbers(2, 7, 3), numbers(5, 3))
def products(x, y, z):
    return torch.bmm(x, y).relu(), torch.baddbmm(z, x, y), (x @ y).sum(), torch.einsum("bij,bjk->ik", x, y)


@case(numbers(2, 3, 9, 9), numbers(4, 3, 3, 3))
def convolution(x, weight):
    return functional.max_pool2d(functional.conv2d(x, weight, padding=1).relu(), 2), functional.avg_pool2d(x, 3)


@case(numbers(2, 3, 6, 7))
def pooling_turned(x):
    return functional.max_pool2d(x.transpose(2, 3), 3, 2, return_indices=True), functional.max_pool2d(x.mT + 1, (2, 3))


@case(numbers(2, 4, 8, 8))
def resizing(x):
    return functional.interpolate(x, scale_factor=2, mode="bilinear"), functional.interpolate(x, size=(5, 5))


@case(numbers(2, 4, 8, 6), numbers(2, 4, 8, 6, seed=1), numbers(2, 4, 8, 6, seed=2))
def attention(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True) * 2


@case(numbers(6, 10), torch.tensor([1, 3, 9, 0, 2, 2]))
def losses(x, target):
    return functional.cross_entropy(x, target), functional.mse_loss(x, x.flip(0)), functional.smooth_l1_loss(x, x * 0)


@case(numbers(7, 11))
def sorting(x):
    values, order = x.sort(1)
    return values + 1, order, x.topk(3, 1).values.sum(), x.median(1).values


@case(numbers(9, 5))
def scans(x):
    return x.cumsum(0).relu(), x.cumprod(1), x.cummax(0).values * 2


@case(numbers(12), torch.tensor(2.5), torch.tensor(3))
def numbers_on_the_host(x, factor, count):
    either = torch.cond(x.sum() > 0, lambda x, factor: factor - x, lambda x, factor: factor / x, (x, factor))
    return x * factor + count, count - x, torch.where(factor > 2, count, x), -factor, either


@case(numbers(8))
def new_tensors(x):
    made = torch.arange(8, device=x.device) * 2
    return x + made, torch.full((3,), 2.0, device=x.device), torch.zeros_like(x).add(1), torch.linspace(0, 1, 5).sum()


@case(numbers(8, 4), torch.tensor(True))
def branches(x, flag):
    return torch.cond(flag, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


@case(numbers(4))
def loops(x):
    return torch.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 2 + 1), (torch.tensor(0, device=x.device), x))


@case(numbers(16, 16))
def several_kernels(x):
    first = x.sum(0)
    return (x - first).abs().sum(1), (x @ x).relu().amax(0), first


@case(numbers(5, dtype=torch.float32), numbers(5, dtype=torch.float32))
def complex_numbers(x, y):
    z = torch.complex(x, y)
    return (z * z).real + 1, z.abs()


@case(numbers(3, 0), numbers(0))
def nothing(x, y):
    return x + 1, y.sum(), torch.cat([x, x], 1)


@case(numbers(4, 4), fullgraph=False)
def a_break(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y.sin() + x


@case(numbers(8, 8))
def many_outputs(x):
    return [x * k for k in range(20)]


@case([numbers(6), numbers(4, 3), numbers(2)])
def lists(tensors):
    return torch._foreach_add(torch._foreach_mul(tensors, 2.0), 1.0)


@case(torch.tensor([[1, 2, 0], [4, 4, 9]]), numbers(10, 6))
def embedding(index, weight):
    return functional.embedding(index, weight, padding_idx=0).sum(1)


class Block(nn.Module):
    """A transformer's block, with a layer behind the attention."""

    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(16), nn.MultiheadAttention(16, 2, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(16, 16), nn.GELU())

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed(x)


class Convolutions(nn.Module):
    """With batch norm, whose statistics change."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(128, 5),
        )

    def forward(self, x):
        return self.layers(x)


MODELS = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 3)), (7, 12)),
    "transformer": (Block, (2, 5, 16)),
    "convolutions": (Convolutions, (4, 3, 8, 8)),
    "recurrent": (lambda: nn.GRUCell(6, 8), (4, 6)),
}
