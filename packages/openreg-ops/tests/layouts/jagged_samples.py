# SPDX-License-Identifier: BSD-3-Clause
"""Calls on nested tensors of layout torch.jagged, by name. Each creates its operands on the device that it gets.

Together they reach every operator that PyTorch has for them (torch.nested._internal.ops).
"""

import torch
from nested_samples import numbers
from torch import nn

F = nn.functional
aten = torch.ops.aten


def jagged(device, *shape, lengths=(2, 3, 1), seed=11, dtype=torch.float32, requires_grad=False):
    """Components of these lengths and this shape behind them, by default four numbers in a row."""
    parts = [numbers("cpu", n, *(shape or (4,)), seed=seed + n, dtype=dtype) for n in lengths]
    return torch.nested.nested_tensor(parts, layout=torch.jagged, device=device, requires_grad=requires_grad)


def like(operand, values):
    """Others with the ragged structure of an operand."""
    return torch.nested.nested_tensor_from_jagged(values, operand.offsets(), min_seqlen=1, max_seqlen=3)


def changed(change):
    """A call that changes an operand in place."""

    def call(device):
        operand = jagged(device)
        change(operand)
        return operand

    return call


def derived(call, *shape):
    """A call and the gradient of its operand."""

    def gradient(device):
        operand = jagged(device, *shape, requires_grad=True)
        result = call(operand)
        dense = result.values() if result.is_nested else result
        (dense * numbers(device, *dense.shape, seed=3)).sum().backward()
        return result.detach(), operand.grad

    return gradient


def embedding(device):
    indices = jagged(device, 1, dtype=torch.int64).abs().squeeze(-1) % 6
    weight = numbers(device, 6, 4, requires_grad=True)
    result = F.embedding(indices, weight)
    (result.values() * numbers(device, 6, 4, seed=3)).sum().backward()
    return result.detach(), weight.grad


def put(device):
    operand = jagged(device)
    index = [torch.tensor([0, 1, 2], device=device), torch.tensor([1, 0, 0], device=device)]
    return operand.index_put(index, numbers(device, 3, 4)), operand.index_put_(index, numbers(device, 3, 4))


def masked(device):
    operand = jagged(device, 1).squeeze(-1)
    return operand.masked_select(operand > 0)


def holes(device):
    return torch.nested.narrow(
        numbers(device, 3, 5, 4), 1, 1, torch.tensor([2, 3, 1], device=device), layout=torch.jagged
    )


MADE = {
    "clone": torch.clone,
    "contiguous": lambda x: x.transpose(1, 2).contiguous(),
    "conversion": lambda x: x.to(torch.float64).float(),
    "detach": torch.Tensor.detach,
    "empty_like": lambda x: torch.empty_like(x).fill_(1),
    "ones_like": torch.ones_like,
    "zeros_like": torch.zeros_like,
    "full_like": lambda x: torch.full_like(x, 3.0),
    "rand_like": lambda x: torch.rand_like(x) < 1,
    "randn_like": lambda x: torch.isnan(torch.randn_like(x)),
    "randint_like": lambda x: torch.randint_like(x, 1),
    "randint_like from": lambda x: torch.randint_like(x, 2, 3),
    "new_empty": lambda x: x.new_empty(()).fill_(1),
    "new_ones": lambda x: x.new_ones(()),
    "new_zeros": lambda x: x.new_zeros(()),
    "fill": lambda x: aten.fill.Scalar(x, 2.0),
    "dropout": lambda x: F.dropout(x, 1.0),
    "frexp": torch.frexp,
    "where": lambda x: torch.where(x > 0, x, -x),
}

ATTRIBUTES = {
    "sizes": lambda x: (x.dim(), x.numel(), x.shape[0], x.shape[2], x.stride()[1:], x.storage_offset()),
    "is_contiguous": lambda x: (
        x.is_contiguous(),
        aten.is_contiguous.default(x),
        aten.is_contiguous.memory_format(x, torch.contiguous_format),
        aten.sym_is_contiguous.default(x),
        x.transpose(1, 2).is_contiguous(),
    ),
    "operators of sizes": lambda x: (
        *(aten.dim.default(x), aten.numel.default(x), aten.sym_numel.default(x), aten.sym_size.default(x)[2]),
        *(aten.sym_stride.default(x)[1:], aten.sym_storage_offset.default(x)),
        *(aten.is_non_overlapping_and_dense.default(x), torch.ops.prim.layout.default(x)),
    ),
    "parts": lambda x: (
        *(
            x.values(),
            x.offsets(),
            x.lengths(),
            aten._nested_get_values.default(x),
            aten._nested_get_offsets.default(x),
        ),
        *(aten._nested_get_lengths.default(x), aten._nested_get_ragged_idx.default(x)),
        *(aten._nested_get_min_seqlen.default(x).shape, aten._nested_get_max_seqlen.default(x).shape),
    ),
    "is_same_size": lambda x: (x.is_same_size(x.sin()), x.is_same_size(jagged(x.device))),
    "is_pinned": lambda x: x.is_pinned(),
    "unbind": lambda x: x.unbind(),
    "select": lambda x: (x.select(0, 1), x.select(2, 3)),
    "slice": lambda x: aten.slice.Tensor(x, 2, 1, 3),
}

VIEWS = {
    "view": lambda x: x.view(3, -1, 2, 2),
    "reshape": lambda x: x.reshape(3, -1, 4, 1),
    "_unsafe_view": lambda x: aten._unsafe_view.default(x, (3, x.shape[1], 2, 2)),
    "transpose": lambda x: x.transpose(1, 2).transpose(1, 2),
    "permute": lambda x: x.unflatten(-1, (2, 2)).permute(0, 3, 1, 2).permute(0, 2, 3, 1),
    "squeeze": lambda x: x.unsqueeze(2).squeeze(2),
    "unflatten and flatten": lambda x: x.unflatten(-1, (2, 2)).flatten(-2),
    "expand": lambda x: x.unsqueeze(-1).expand(3, x.shape[1], 4, 2),
    "expand_as": lambda x: x.sum(-1, keepdim=True).expand_as(x),
    "broadcast_to": lambda x: torch.broadcast_to(x.unsqueeze(-1), (3, x.shape[1], 4, 2)),
    "chunk": lambda x: x.chunk(2, -1)[1],
    "split": lambda x: x.split(2, -1)[0],
    "narrow": lambda x: x.narrow(2, 1, 2),
    "cat": lambda x: torch.cat([x, x * 2], -1),
    "stack": lambda x: torch.stack([x, x + 1], -1),
}

REDUCED = {
    "sum": lambda x: (x.sum(), x.sum(2), x.sum(1), x.sum(1, keepdim=True)),
    "mean": lambda x: (x.mean(), x.mean(2), x.mean(1)),
    "prod": lambda x: (x.prod(), x.prod(1), x.prod(2)),
    "amax and amin": lambda x: (x.amax(1), x.amin((0, 1)), x.amax(-1)),
    "max and min": lambda x: (x.max(), x.min(), *x.max(2), *x.min(2)),
    "argmax and argmin": lambda x: (x.argmax(2), x.argmin(1)),
    "any and all": lambda x: (
        *((x > 0).any(), (x > 0).all(), (x > 0).any(1), (x > 0).all(2), (x > 0).any((0, 1)), (x > 0).all((0, 1, 2))),
        *(aten._is_all_true.default(x > -9), aten._is_any_true.default(x > 9)),
    ),
    "softmax": lambda x: (x.softmax(-1), x.softmax(1)),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "to_padded_tensor": lambda x: (x.to_padded_tensor(-1.5), x.to_padded_tensor(0.0, (3, 5, 4))),
}

DERIVED = {
    "arithmetic": derived(lambda x: (x * x + 1).sin() / 2),
    "a dense row": derived(lambda x: x + numbers(x.device, 4)),
    "a row for each component": derived(lambda x: x * numbers(x.device, 3, 1, 4)),
    "linear": derived(lambda x: F.linear(x, numbers(x.device, 5, 4), numbers(x.device, 5))),
    "matmul": derived(lambda x: x @ numbers(x.device, 4, 5)),
    "bmm": derived(lambda x: torch.bmm(x, numbers(x.device, 3, 4, 5))),
    "layer_norm": derived(lambda x: F.layer_norm(x, (4,), numbers(x.device, 4), numbers(x.device, 4))),
    "rms_norm": derived(lambda x: F.rms_norm(x, (4,), numbers(x.device, 4))),
    "softmax": derived(lambda x: x.softmax(-1)),
    "dropout": derived(lambda x: F.dropout(x, 1.0)),
    "max": derived(lambda x: x.max(2).values),
    "select": derived(lambda x: x.select(0, 1)),
    "unbind": derived(lambda x: x.unbind()[1]),
    "to_padded_tensor": derived(lambda x: x.to_padded_tensor(0.0)),
    "cat": derived(lambda x: torch.cat([x, x.sin()], -1)),
    "chunk": derived(lambda x: x.chunk(2, -1)[0]),
    **{
        name: derived(lambda x, name=name: getattr(F, name)(x))
        for name in (
            *("elu", "gelu", "hardshrink", "hardsigmoid", "hardtanh", "mish", "relu", "sigmoid", "silu"),
            *("softplus", "softshrink", "tanh"),
        )
    },
}

CHANGED = {
    "zero_": changed(lambda x: x.zero_()),
    "fill_": changed(lambda x: x.fill_(2)),
    "mul_": changed(lambda x: x.mul_(2)),
    "copy_": changed(lambda x: x.copy_(x.sin())),
    "record_stream": changed(lambda x: x.record_stream(torch.accelerator.current_stream()) if x.is_openreg else None),
}

# Composite operators: PyTorch takes them apart first, except in inference mode.
INFERENCE = {
    "conversion": lambda x: x.to(torch.float64),
    "values": lambda x: (x.values() * 2, aten.values.default(x) * 2),
    "expand_as": lambda x: torch.ones(4, device=x.device).expand_as(x),
    "is_contiguous": lambda x: (
        aten.is_contiguous.default(x),
        aten.is_contiguous.memory_format(x, torch.contiguous_format),
    ),
    "split_with_sizes": lambda x: x.split_with_sizes([1, 3], -1),
}


def inferred(call):
    def in_inference_mode(device):
        with torch.inference_mode():
            return call(jagged(device))

    return in_inference_mode


OTHERS = {
    **{f"{name} in inference mode": inferred(call) for name, call in INFERENCE.items()},
    "conv1d": lambda device: F.conv1d(jagged(device, 4, 6), numbers(device, 2, 4, 1), numbers(device, 2)),
    "embedding": embedding,
    "index_put": put,
    "masked_select": masked,
    "narrow": holes,
    "narrow, with what pointwise operators do": lambda device: holes(device).sin() + 1,
    "nested_tensor_from_jagged": lambda device: torch.nested.nested_tensor_from_jagged(
        numbers(device, 6, 4), torch.tensor([0, 2, 5, 6], device=device)
    ),
    "as_nested_tensor": lambda device: torch.nested.as_nested_tensor(
        [numbers(device, 2, 4), numbers(device, 3, 4)], layout=torch.jagged
    ),
    "_nested_from_padded_tensor": lambda device: torch._nested_from_padded_tensor(
        numbers(device, 3, 3, 4), jagged(device).offsets(), torch.ops.aten._nested_get_jagged_dummy(jagged(device)), 1
    ),
    "matmul of two": lambda device: (lambda x: torch.matmul(x.transpose(1, 2), like(x, numbers(device, 6, 3))))(
        jagged(device)
    ),
}

RESULTS = (
    {
        name: lambda device, call=call: call(jagged(device))
        for table in (MADE, ATTRIBUTES, VIEWS, REDUCED)
        for name, call in table.items()
    }
    | {f"gradient of {name}": call for name, call in DERIVED.items()}
    | CHANGED
    | OTHERS
)

REFUSED = {
    "no components": lambda device: torch.nested.nested_tensor([], layout=torch.jagged, device=device),
    "numbers as components": lambda device: torch.nested.nested_tensor(
        [torch.tensor(1.0), torch.tensor(2.0)], layout=torch.jagged, device=device
    ),
    "components of other dimensions": lambda device: torch.nested.as_nested_tensor(
        [numbers(device, 2), numbers(device, 2, 2)], layout=torch.jagged
    ),
    "components of other dtypes": lambda device: torch.nested.as_nested_tensor(
        [numbers(device, 2), numbers(device, 2).half()], layout=torch.jagged
    ),
    "two ragged dimensions": lambda device: torch.nested.as_nested_tensor(
        [numbers(device, 2, 3), numbers(device, 3, 2)], layout=torch.jagged
    ),
    "other lengths": lambda device: jagged(device) + jagged(device, lengths=(1, 2, 3)),
    "another layout": lambda device: (
        jagged(device) + torch.nested.nested_tensor([numbers(device, 2, 4), numbers(device, 3, 4)])
    ),
    "size": lambda device: aten.size.default(jagged(device)),
    "unbind of another dimension": lambda device: jagged(device).unbind(1),
    "chunk of the ragged dimension": lambda device: jagged(device).chunk(2, 1),
    "narrow to a number for all": lambda device: torch.nested.narrow(
        numbers(device, 3, 5, 4), 1, 1, torch.tensor([1, 2], device=device), layout=torch.jagged
    ),
    "masked_select of three dimensions": lambda device: (lambda x: x.masked_select(x > 0))(jagged(device)),
    "linear of another width": lambda device: F.linear(jagged(device), numbers(device, 5, 3)),
    "broadcast_tensors": lambda device: torch.broadcast_tensors(jagged(device), torch.ones(4, device=device)),
    "an operator that is not there": lambda device: torch.fft.fft(jagged(device)),
}

# What has no result to compare.
UNCOMPARED = {
    "_pin_memory": lambda device: jagged("cpu").pin_memory(),
}
