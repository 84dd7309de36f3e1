# SPDX-License-Identifier: BSD-3-Clause
"""Calls large enough for kernels to choose by flags, which PyTorch's samples are not. A table like op_db."""

import torch
from torch.nn import functional
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

FLOATS = (torch.float32, torch.bfloat16, torch.float16)
PLACES = 50
COUNT = 40_000  # above the size at which PyTorch's kernels use several threads


def numbers(*shape):
    def make(dtype):
        return torch.randn(*shape, dtype=torch.float32).to(dtype)

    return make


def places(count, dims=1):
    def make(dtype):
        return torch.randint(PLACES, (count,) if dims == 1 else (count, dims))

    return make


def entry(name, function, *operands, dtypes=FLOATS, gradient=True):
    def samples(op_info, device, dtype, requires_grad, **kwargs):
        values = [make(dtype) for make in operands]
        for value in values:
            value.requires_grad_(requires_grad and value.is_floating_point())
        yield SampleInput(values[0], args=tuple(values[1:]))

    return OpInfo(
        f"large.{name}",
        op=function,
        dtypes=set(dtypes),
        sample_inputs_func=samples,
        supports_autograd=gradient,
        supports_out=False,
        method_variant=None,
        inplace_variant=None,
        operator_variant=None,
        inplace_operator_variant=None,
    )


def recurrent(kind):
    """A layer as a function of its input and parameters."""

    def function(x, *parameters):
        state = x.new_zeros(1, x.size(1), x.size(2))
        if kind == "lstm":
            return torch.lstm(x, (state, state), parameters, True, 1, 0.0, True, False, False)
        return getattr(torch, kind)(x, state, parameters, True, 1, 0.0, True, False, False)

    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    sizes = ((8, 8, 32), (gates * 32, 32), (gates * 32, 32), (gates * 32,), (gates * 32,))
    return entry(kind, function, *(numbers(*size) for size in sizes), dtypes=(torch.float32,))


TABLE = [
    entry("mm", torch.mm, numbers(64, 64), numbers(64, 64)),
    entry("addmm", torch.addmm, numbers(64), numbers(64, 64), numbers(64, 64)),
    entry("bmm", torch.bmm, numbers(4, 64, 64), numbers(4, 64, 64)),
    entry("baddbmm", torch.baddbmm, numbers(4, 64, 64), numbers(4, 64, 64), numbers(4, 64, 64)),
    entry("mv", torch.mv, numbers(256, 256), numbers(256)),
    entry("addmv", torch.addmv, numbers(256), numbers(256, 256), numbers(256)),
    entry("linear", functional.linear, numbers(32, 64), numbers(64, 64), numbers(64)),
    entry("conv1d", functional.conv1d, numbers(4, 16, 64), numbers(32, 16, 3)),
    entry("conv2d", functional.conv2d, numbers(4, 16, 24, 24), numbers(32, 16, 3, 3)),
    entry("conv3d", functional.conv3d, numbers(2, 8, 8, 8, 8), numbers(8, 8, 3, 3, 3)),
    entry("conv_transpose2d", functional.conv_transpose2d, numbers(4, 16, 24, 24), numbers(16, 8, 3, 3)),
    entry("gelu", functional.gelu, numbers(4096)),
    entry("prelu", functional.prelu, numbers(64, 64), numbers(1)),
    entry("softmax", lambda x: x.softmax(1), numbers(64, 64)),
    entry("layer_norm", lambda x: functional.layer_norm(x, (64,)), numbers(64, 64)),
    entry("batch_norm", lambda x: functional.batch_norm(x, None, None, training=True), numbers(8, 16, 8, 8)),
    entry("max_pool2d", lambda x: functional.max_pool2d(x, 2), numbers(8, 16, 8, 8)),
    entry("attention", functional.scaled_dot_product_attention, *[numbers(2, 4, 64, 32)] * 3),
    recurrent("lstm"),
    recurrent("gru"),
    recurrent("rnn_tanh"),
    entry("index_put", lambda x, i, v: x.index_put((i,), v), numbers(PLACES), places(COUNT), numbers(COUNT)),
    entry("put", lambda x, i, v: x.put(i, v), numbers(PLACES), places(COUNT), numbers(COUNT), gradient=False),
    entry("index_copy", lambda x, i, v: x.index_copy(0, i, v), numbers(PLACES), places(COUNT), numbers(COUNT)),
    entry("index_add", lambda x, i, v: x.index_add(0, i, v), numbers(PLACES), places(COUNT), numbers(COUNT)),
    entry("scatter_add", lambda x, i, v: x.scatter_add(0, i, v), numbers(PLACES), places(COUNT), numbers(COUNT)),
    entry("embedding", lambda x, i: functional.embedding(i, x), numbers(PLACES, 4), places(COUNT)),
]
