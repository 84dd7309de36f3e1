# SPDX-License-Identifier: BSD-3-Clause
"""Calls on nested tensors of strided layout, by name. Each creates its operands on the device that it gets.

Together they reach every function that PyTorch has for such tensors on the CPU.
"""

import copy
import pickle

import torch
from torch import nn

F = nn.functional
aten = torch.ops.aten


def numbers(device, *shape, seed=5, dtype=torch.float32, requires_grad=False):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).mul(2).to(dtype)
    return values.to(device, non_blocking=True).requires_grad_(requires_grad)


def nested(device, *shapes, seed=11, dtype=torch.float32, requires_grad=False):
    parts = [numbers("cpu", *shape, seed=seed + i, dtype=dtype) for i, shape in enumerate(shapes)]
    on_host = torch.nested.nested_tensor(parts, dtype=dtype)
    return on_host.to(device, non_blocking=True).requires_grad_(requires_grad)


def rows(device, **options):
    """Three components of rows of four numbers."""
    return nested(device, (2, 4), (3, 4), (1, 4), **options)


def uneven(device, **options):
    """Components with no size in common, one without elements."""
    return nested(device, (2, 3), (3, 5), (0, 2), **options)


def heads(device, **options):
    """(batch 2, heads 2, ragged, width 4)."""
    return nested(device, (2, 3, 4), (2, 5, 4), **options)


def columns(device, **options):
    """What rows() can be multiplied with."""
    return nested(device, (4, 2), (4, 3), (4, 5), **options)


def changed(change):
    """A call that changes rows() in place."""

    def call(device):
        operand = rows(device)
        change(operand)
        return operand

    return call


def derived(call, *operands):
    """Gradients of a call's result for all of its operands, which functions of the device and options make."""

    def gradients(device):
        made = [make(device, requires_grad=True) for make in operands]
        result = call(*made)
        parts = result.unbind() if result.is_nested else [result]
        weights = [numbers(device, *part.shape, seed=40 + i) for i, part in enumerate(parts)]
        return torch.autograd.grad(parts, made, weights)

    return gradients


def weight(*shape):
    """A maker of dense operands for derived()."""
    return lambda device, **options: numbers(device, *shape, **options)


POINTWISE = {
    **{
        name: lambda device, name=name: getattr(aten, name)(rows(device))
        for name in (
            *("abs", "cos", "gelu", "isinf", "isnan", "isneginf", "isposinf", "logical_not", "neg", "relu", "sgn"),
            *("silu", "sin", "sqrt", "tanh"),
        )
    },
    **{
        name: changed(lambda operand, name=name: getattr(aten, name)(operand))
        for name in ("abs_", "gelu_", "logical_not_", "neg_", "relu_", "sgn_", "silu_", "tanh_", "zero_")
    },
    **{
        f"gradient of {name}": derived(call, rows)
        for name, call in {"abs": torch.abs, "gelu": F.gelu, "relu": F.relu, "silu": F.silu}.items()
    },
    "gelu by tanh": lambda device: F.gelu(rows(device), approximate="tanh"),
    "add": lambda device: torch.add(rows(device), rows(device, seed=2), alpha=3),
    "add of transposed ones": lambda device: heads(device).transpose(1, 2) + heads(device, seed=2).transpose(1, 2),
    "add_": changed(lambda operand: operand.add_(rows(operand.device, seed=2))),
    "sub": lambda device: rows(device) - rows(device, seed=2),
    "mul": lambda device: rows(device) * rows(device, seed=2),
    "mul by a number": lambda device: rows(device) * 2.5,
    "mul by a number of the device": lambda device: rows(device) * torch.full((), 2.5, device=device),
    "mul.Scalar": lambda device: aten.mul.Scalar(rows(device), 2.5),
    "mul_": changed(lambda operand: operand.mul_(rows(operand.device, seed=2))),
    "mul_.Scalar": changed(lambda operand: aten.mul_.Scalar(operand, 3)),
    "div": lambda device: rows(device) / rows(device, seed=2),
    "div by a number": lambda device: rows(device) / 4,
    "div.Scalar": lambda device: aten.div.Scalar(rows(device), 4),
    "gradients of mul and add": derived(lambda a, b: a * b + a, rows, rows),
    "gradients of div": derived(torch.div, rows, rows),
    "eq.Scalar": lambda device: rows(device, dtype=torch.int64) == 1,
    "eq.Tensor": lambda device: rows(device, dtype=torch.int64) == torch.full((), 1, device=device),
    "ge": lambda device: rows(device) >= 0.5,
    "gt": lambda device: rows(device) > 0.5,
    "masked_fill": lambda device: aten.masked_fill.Scalar(rows(device), rows(device, seed=3) > 0, 7.0),
    "where": lambda device: torch.where(rows(device) > 0, torch.full((), 7.0, device=device), rows(device)),
    "where with out=": lambda device: torch.where(
        rows(device) > 0, torch.full((), 7.0, device=device), rows(device), out=rows(device, seed=9)
    ),
    "all.dim": lambda device: torch.all(rows(device) > -9, dim=-1, keepdim=True),
}

MADE = {
    "fill_": changed(lambda operand: operand.fill_(3)),
    "fill_ with a number of the device": changed(lambda x: x.fill_(torch.full((), 3.0, device=x.device))),
    "normal_": lambda device: torch.isnan(rows(device).normal_()),
    "randn_like": lambda device: torch.isnan(torch.randn_like(rows(device))),
    "ones_like": lambda device: torch.ones_like(rows(device)),
    "zeros_like": lambda device: torch.zeros_like(rows(device)),
    "empty_like": lambda device: torch.empty_like(rows(device)).fill_(1),
    "clone": lambda device: rows(device).clone(),
    "clone of a transposed one": lambda device: heads(device).transpose(1, 2).clone(),
    "contiguous": lambda device: heads(device).transpose(1, 2).contiguous(),
    "copy_": changed(lambda operand: operand.copy_(rows(operand.device, seed=2))),
    "copy_ from the CPU": changed(lambda operand: operand.copy_(rows("cpu", seed=2), non_blocking=True)),
    "conversion": lambda device: rows(device).to(torch.float64),
    "detach": lambda device: rows(device, requires_grad=True).detach(),
    "alias": lambda device: aten.alias(rows(device)),
    "dropout of everything": lambda device: F.dropout(rows(device), 1.0),
    "dropout of nothing": lambda device: F.dropout(rows(device), 0.0),
    "dropout in evaluation": lambda device: F.dropout(rows(device), 0.5, training=False),
    "native_dropout": lambda device: torch.native_dropout(rows(device), 1.0, True),
    "gradient of dropout": derived(lambda x: F.dropout(x, 1.0), rows),
    "embedding": lambda device: F.embedding(
        torch.nested.nested_tensor([torch.tensor([1, 5]), torch.tensor([0, 2, 2])]).to(device, non_blocking=True),
        numbers(device, 6, 4),
    ),
    "as_nested_tensor": lambda device: torch.nested.as_nested_tensor([numbers(device, 2, 3), numbers(device, 3, 3)]),
    "gradients of as_nested_tensor": derived(
        lambda a, b: torch.nested.as_nested_tensor([a, b]), weight(2, 3), weight(3, 3)
    ),
    "no components": lambda device: torch.nested.nested_tensor([], device=device).relu(),
    "components without elements": lambda device: nested(device, (0, 4), (0, 4)).relu(),
    "numbers as components": lambda device: (
        torch.nested.nested_tensor([1.0, 2.0, 3.0]).to(device, non_blocking=True) * 2
    ),
}

SHAPES = {
    "is_same_size": lambda device: rows(device).is_same_size(rows(device)),
    "is_pinned": lambda device: rows(device).is_pinned(),
    "is_contiguous": lambda device: (heads(device).is_contiguous(), heads(device).transpose(1, 2).is_contiguous()),
    "numel, dim and size": lambda device: (rows(device).numel(), rows(device).dim(), rows(device).size(2)),
    "unbind": lambda device: rows(device).unbind(),
    "gradient of unbind": derived(lambda x: x.unbind()[1], rows),
    "values": lambda device: rows(device).values(),
    "select a component": lambda device: (rows(device)[1], rows(device).select(0, -1)),
    "select of another dimension": lambda device: rows(device).select(2, 1),
    "gradient of select": derived(lambda x: x[1], rows),
    "transpose": lambda device: heads(device).transpose(1, -1),
    "gradient of transpose": derived(lambda x: x.transpose(1, 2).contiguous(), heads),
    "squeeze": lambda device: nested(device, (2, 1, 4), (3, 1, 4)).squeeze(2),
    "squeeze of several": lambda device: nested(device, (2, 1, 4), (3, 1, 4)).squeeze((2,)),
    "unsqueeze": lambda device: (rows(device).unsqueeze(2), rows(device).unsqueeze(-1)),
    "view": lambda device: rows(device).view(3, -1, 2, 2),
    "reshape": lambda device: heads(device).transpose(1, 2).reshape(2, -1, 8),
    "reshape_as": lambda device: rows(device).reshape_as(rows(device)),
    "gradient of reshape": derived(lambda x: x.reshape(3, -1, 2, 2), rows),
    "chunk": lambda device: rows(device).chunk(2, -1),
    "split_with_sizes": lambda device: rows(device).split_with_sizes([1, 3], -1),
    "narrow": lambda device: torch.narrow(rows(device), 0, 1, 2),
    "cat": lambda device: torch.cat([rows(device), nested(device, (5, 4))]),
    "_nested_view_from_buffer": lambda device: torch._nested_view_from_buffer(
        numbers(device, 10), torch.tensor([[2, 3], [1, 4]]), torch.tensor([[3, 1], [4, 1]]), torch.tensor([0, 6])
    ),
    "copy.copy": lambda device: copy.copy(rows(device)),
}

REDUCED = {
    "sum": lambda device: rows(device).sum(-1, keepdim=True),
    "sum of uneven rows": lambda device: uneven(device).sum(-1, keepdim=True),
    "sum of integers": lambda device: rows(device, dtype=torch.int32).sum(2, keepdim=True),
    "sum of nothing": lambda device: nested(device, (0, 4), (0, 4)).sum(-1, keepdim=True),
    "gradient of sum": derived(lambda x: x.sum(-1, keepdim=True), rows),
    "gradient of a sum of uneven rows": derived(lambda x: x.sum(-1, keepdim=True), uneven),
    "softmax": lambda device: (rows(device).softmax(-1), rows(device).softmax(1)),
    "softmax of no components": lambda device: torch.nested.nested_tensor([], device=device).softmax(0),
    "gradient of softmax": derived(lambda x: x.softmax(-1), rows),
    "_safe_softmax": lambda device: aten._safe_softmax(rows(device), -1),
    "_nested_tensor_softmax_with_shape": lambda device: aten._nested_tensor_softmax_with_shape(
        numbers(device, 3, 2, 3, 3), rows(device)
    ),
    "layer_norm": lambda device: F.layer_norm(rows(device), (4,), numbers(device, 4), numbers(device, 4, seed=6)),
    "layer_norm of two dimensions": lambda device: F.layer_norm(
        nested(device, (2, 3, 4), (5, 3, 4)), (3, 4), numbers(device, 3, 4), numbers(device, 3, 4, seed=6)
    ),
    "layer_norm of nothing": lambda device: F.layer_norm(
        nested(device, (0, 4), (0, 4)), (4,), numbers(device, 4), numbers(device, 4, seed=6)
    ),
    "native_layer_norm": lambda device: torch.native_layer_norm(
        rows(device), (4,), numbers(device, 4), numbers(device, 4, seed=6), 1e-5
    ),
    "gradients of layer_norm": derived(lambda x, w, b: F.layer_norm(x, (4,), w, b), rows, weight(4), weight(4)),
}

PRODUCTS = {
    "bmm": lambda device: torch.bmm(rows(device), columns(device)),
    "bmm with a dense batch": lambda device: torch.bmm(rows(device), numbers(device, 3, 4, 2)),
    "gradients of bmm": derived(torch.bmm, rows, columns),
    "matmul": lambda device: torch.matmul(rows(device), columns(device)),
    "matmul of transposed ones": lambda device: torch.matmul(heads(device), heads(device, seed=2).transpose(-1, -2)),
    "matmul of integers": lambda device: torch.matmul(
        rows(device, dtype=torch.int64), columns(device, dtype=torch.int64)
    ),
    "matmul with a dense matrix": lambda device: torch.matmul(
        nested(device, (2, 3, 4), (5, 3, 4)), numbers(device, 4, 2)
    ),
    "matmul with out=": lambda device: torch.matmul(
        rows(device), columns(device), out=nested(device, (2, 2), (3, 3), (1, 5))
    ),
    "gradients of matmul": derived(torch.matmul, rows, columns),
    "linear": lambda device: F.linear(rows(device), numbers(device, 5, 4), numbers(device, 5)),
    "linear without a bias": lambda device: F.linear(rows(device), numbers(device, 5, 4)),
    "gradients of linear": derived(F.linear, rows, weight(5, 4), weight(5)),
    "attention": lambda device: F.scaled_dot_product_attention(
        heads(device), heads(device, seed=1), heads(device, seed=2)
    ),
    "gradients of attention": derived(F.scaled_dot_product_attention, heads, heads, heads),
    "_fused_sdp_choice": lambda device: torch._fused_sdp_choice(heads(device), heads(device), heads(device)),
}

PADDED = {
    "to_padded_tensor": lambda device: rows(device).to_padded_tensor(-1.5),
    "to_padded_tensor of uneven ones": lambda device: uneven(device).to_padded_tensor(0.5),
    "to_padded_tensor of a size": lambda device: rows(device).to_padded_tensor(0.0, (3, 5, 6)),
    "to_padded_tensor of no components": lambda device: torch.nested.nested_tensor([], device=device).to_padded_tensor(
        0
    ),
    "to_padded_tensor of integers": lambda device: rows(device, dtype=torch.int64).to_padded_tensor(-7.0),
    "gradient of to_padded_tensor": derived(lambda x: x.to_padded_tensor(0.0), rows),
    "_nested_from_padded": lambda device: torch._nested_from_padded(
        numbers(device, 2, 3, 4), torch.tensor([[2, 4], [1, 3]])
    ),
    "_nested_from_padded of heads": lambda device: torch._nested_from_padded(
        numbers(device, 2, 2, 3, 4), torch.tensor([[2, 8], [1, 8]]), True
    ),
    "_nested_from_padded_and_nested_example": lambda device: torch._nested_from_padded_and_nested_example(
        numbers(device, 3, 3, 4), rows(device)
    ),
    "gradient of _nested_from_padded": derived(
        lambda x: torch._nested_from_padded(x, torch.tensor([[2, 4], [1, 4]])), weight(2, 3, 4)
    ),
    "_transform_bias_rescale_qkv": lambda device: torch._transform_bias_rescale_qkv(
        nested(device, (2, 12), (3, 12)), numbers(device, 12), 2
    ),
    "_test_autograd_multiple_dispatch": lambda device: torch._test_autograd_multiple_dispatch(rows(device)),
    "_test_autograd_multiple_dispatch.ntonly": lambda device: torch._test_autograd_multiple_dispatch(
        rows(device), True
    ),
}


def attention(device, **options):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, batch_first=True).to(device, non_blocking=True).eval()
    operand = nested(device, (2, 8), (3, 8))
    with torch.no_grad():
        return module(operand, operand, operand, **options)[0]


def encoder_layer(device, **options):
    torch.manual_seed(0)
    module = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options).to(device, non_blocking=True).eval()
    with torch.no_grad():
        return module(nested(device, (2, 8), (3, 8)))


MODULES = {
    "MultiheadAttention": lambda device: attention(device, need_weights=False),
    "MultiheadAttention with weights": attention,
    "TransformerEncoderLayer": encoder_layer,
    "TransformerEncoderLayer, norm first": lambda device: encoder_layer(device, norm_first=True),
    "TransformerEncoderLayer with gelu": lambda device: encoder_layer(device, activation="gelu"),
}

RESULTS = POINTWISE | MADE | SHAPES | REDUCED | PRODUCTS | PADDED | MODULES

MASK = torch.tensor([[True, True, False], [True, False, False]])
GAPS = torch.tensor([[True, False, True], [True, False, False]])

# The host has to know numbers that are on the device.
WAITING = {
    "_nested_tensor_from_mask": lambda device: torch._nested_tensor_from_mask(
        numbers(device, 2, 3, 4), MASK.to(device)
    ),
    "_nested_tensor_from_mask_left_aligned": lambda device: [
        torch._nested_tensor_from_mask_left_aligned(numbers(device, 2, 3, 4), mask.to(device)) for mask in (MASK, GAPS)
    ],
    "pickle": lambda device: pickle.loads(pickle.dumps(rows(device))),
    "repr": lambda device: repr(rows(device)).replace(", device='openreg:0'", ""),
}

# What the CPU refuses.
REFUSED = {
    "components of other dimensions": lambda device: torch.nested.nested_tensor(
        [numbers(device, 2), numbers(device, 2, 2)], device=device
    ),
    "nested and dense": lambda device: rows(device) + numbers(device, 4),
    "other sizes": lambda device: rows(device) + nested(device, (2, 4), (2, 4), (1, 4)),
    "copy_ of other sizes": lambda device: rows(device).copy_(uneven(device)),
    "another layout": lambda device: (
        rows(device) + torch.nested.nested_tensor([numbers(device, 2, 4), numbers(device, 3, 4)], layout=torch.jagged)
    ),
    "unbind of another dimension": lambda device: rows(device).unbind(1),
    "select beyond the components": lambda device: rows(device).select(0, 5),
    "select beyond a component": lambda device: uneven(device).select(1, 0),
    "the size of a ragged dimension": lambda device: rows(device).size(1),
    "transpose of components": lambda device: heads(device).transpose(0, 1),
    "squeeze": lambda device: rows(device).squeeze(),
    "view": lambda device: rows(device).view(3, -1, 5),
    "chunk": lambda device: rows(device).chunk(3, -1),
    "split_with_sizes": lambda device: rows(device).split_with_sizes([1, 1], -1),
    "sum of another dimension": lambda device: rows(device).sum(1),
    "sum without keepdim": lambda device: rows(device).sum(-1),
    "sum with a dtype": lambda device: rows(device).sum(-1, keepdim=True, dtype=torch.float64),
    "sum of a transposed one": lambda device: heads(device).transpose(1, 2).sum(-1, keepdim=True),
    "sum of bool": lambda device: (rows(device) > 0).sum(-1, keepdim=True),
    "softmax of components": lambda device: rows(device).softmax(0),
    "bmm": lambda device: torch.bmm(rows(device), nested(device, (3, 2), (4, 3), (4, 5))),
    "matmul of other sizes": lambda device: torch.matmul(rows(device), rows(device)),
    "matmul of other dimensions": lambda device: torch.matmul(rows(device), heads(device)),
    "matmul with a dense one": lambda device: torch.matmul(rows(device), numbers(device, 4, 2)),
    "linear of another width": lambda device: F.linear(rows(device), numbers(device, 5, 3)),
    "linear of four dimensions": lambda device: F.linear(heads(device), numbers(device, 5, 4)),
    "layer_norm without weights": lambda device: F.layer_norm(rows(device), (4,)),
    "layer_norm of uneven rows": lambda device: F.layer_norm(
        uneven(device), (3,), numbers(device, 3), numbers(device, 3)
    ),
    "layer_norm of a transposed one": lambda device: F.layer_norm(
        heads(device).transpose(1, 2), (4,), numbers(device, 4), numbers(device, 4)
    ),
    "to_padded_tensor of a transposed one": lambda device: heads(device).transpose(1, 2).to_padded_tensor(0.0),
    "to_padded_tensor of a size too small": lambda device: rows(device).to_padded_tensor(0.0, (3, 1, 6)),
    "_nested_from_padded of other dimensions": lambda device: torch._nested_from_padded(
        numbers(device, 2, 3, 4), torch.tensor([[2], [1]])
    ),
    "causal attention": lambda device: F.scaled_dot_product_attention(
        heads(device), heads(device), heads(device), is_causal=True
    ),
    "attention with a mask": lambda device: F.scaled_dot_product_attention(
        heads(device), heads(device), heads(device), attn_mask=numbers(device, 2, 1, 1, 5)
    ),
    "a mask with gaps": lambda device: torch._nested_tensor_from_mask(numbers(device, 2, 3, 4), GAPS.to(device)),
    "a mask of numbers": lambda device: torch._nested_tensor_from_mask(
        numbers(device, 2, 3, 4), MASK.float().to(device)
    ),
    "reading a number": lambda device: nested(device, (1,)).item(),
    "another operator": lambda device: rows(device).exp(),
    "a reduction that PyTorch lacks": lambda device: rows(device).mean(-1, keepdim=True),
    "training MultiheadAttention": lambda device: (
        nn.MultiheadAttention(8, 2, batch_first=True).to(device).train()(*[nested(device, (2, 8), (3, 8))] * 3)
    ),
}
