# SPDX-License-Identifier: BSD-3-Clause
"""Calls of registered operators that neither PyTorch's table nor the samples of ours reach; their results are compared
in the tests of their families."""


import torch
from parity import DEVICE
from torch import nn
from torch.nn import functional

import openreg_ops.functional


def rotations():
    torch.ops.openreg.rotary_embedding(ones(2, 4), ones(2, 2))


def ones(*shape, **options):
    return torch.ones(shape, device=DEVICE, **options)


def empty(dtype=torch.float32):
    return torch.empty(0, dtype=dtype, device=DEVICE)


def leaf(*shape):
    return torch.rand(shape, device=DEVICE).add(0.5).requires_grad_()


def transforms():
    names = [f"{kind}fft{dims}" for kind in ("", "i", "r", "ir", "h", "ih") for dims in ("", "2", "n")]
    for name in names:
        real_in, real_out = name.startswith(("rfft", "ihfft")), name.startswith(("irfft", "hfft"))
        x = ones(4, 4) if real_in else ones(4, 4, dtype=torch.complex64)
        getattr(torch.fft, name)(x, out=empty(torch.float32 if real_out else torch.complex64))


def distributions():
    torch.binomial(ones(3) * 5, ones(3) / 2)
    torch.poisson(ones(3))
    torch.distributions.Gamma(leaf(3), ones(3)).rsample().sum().backward()
    torch.distributions.Dirichlet(leaf(3)).rsample()[0].backward()
    torch.normal(ones(3), 1.0, out=torch.empty(3, device=DEVICE))
    torch.normal(1.0, ones(3))
    torch.normal(1.0, ones(3), out=torch.empty(3, device=DEVICE))
    torch.randperm(5, device=DEVICE)
    torch.ops.aten.rrelu_with_noise.out(ones(3), ones(3), 0.1, 0.3, True, out=empty())


def recurrent_layers():
    for layer in (nn.LSTM, nn.GRU, nn.RNN, lambda *sizes: nn.RNN(*sizes, nonlinearity="relu")):
        net = layer(3, 4).to(DEVICE)
        net(leaf(2, 1, 3))[0].sum().backward()
    nn.LSTMCell(3, 4).to(DEVICE)(leaf(1, 3))[0].sum().backward()


def normalisations():
    torch._weight_norm_interface(leaf(3, 4), leaf(3, 1))[0].sum().backward()
    parameters = [ones(2) for _ in range(4)]
    torch.ops.aten._batch_norm_no_update(ones(3, 2), *parameters, 0.1, 1e-5)
    outs = {"out": empty(), "save_mean": empty(), "save_invstd": empty()}
    torch.ops.aten._native_batch_norm_legit.out(ones(3, 2), *parameters, True, 0.1, 1e-5, **outs)


def normalisation_over_processes():
    x, count, running = ones(3, 2), torch.tensor([3], dtype=torch.int32, device=DEVICE), (ones(2), ones(2), 0.1, 1e-5)
    mean, invstd = torch.batch_norm_stats(x, 1e-5)
    torch.batch_norm_gather_stats(x, mean[None], invstd[None], *running, 3)
    torch.batch_norm_gather_stats_with_counts(x, mean[None], invstd[None], *running, count)
    torch.batch_norm_elemt(x, None, None, mean, invstd, 1e-5)
    sums = torch.batch_norm_backward_reduce(x, x, mean, invstd, ones(2), True, True, True)
    torch.batch_norm_backward_elemt(x, x, mean, invstd, None, *sums[:2], count)


def attention():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(DEVICE).eval()
    attend = nn.MultiheadAttention(8, 2, batch_first=True).to(DEVICE).eval()
    x = ones(2, 3, 8)
    with torch.no_grad():
        layer(x)
        attend(x, x, x)
    torch._transform_bias_rescale_qkv(ones(2, 3, 24), ones(24), 2)
    torch._fused_sdp_choice(ones(1, 2, 3, 4), ones(1, 2, 3, 4), ones(1, 2, 3, 4))
    torch._masked_softmax(leaf(2, 3), ones(2, 3) > 2, 1, 2).sum().backward()
    query = leaf(2, 3, 2, 4)
    result = torch.ops.aten._efficient_attention_forward(query, query, query, *[None] * 5, 0.0, 0, True)
    result[0].sum().backward()


def nested_tensors():
    offsets = torch.tensor([0, 1, 3], device=DEVICE)
    padded = torch.ops.aten._jagged_to_padded_dense_forward(ones(3, 2), [offsets], [2])
    torch.ops.aten._padded_dense_to_jagged_forward(padded, [offsets], 3)
    torch._nested_tensor_from_mask_left_aligned(ones(2, 3, 4), ones(2, 3) > 0)
    torch._nested_tensor_from_mask(ones(2, 3, 4), ones(2, 3) > 0)
    sizes = torch.tensor([[2], [2]])
    torch.ops.aten._nested_view_from_buffer(ones(4), sizes, torch.ones(2, 1, dtype=torch.int64), torch.tensor([0, 2]))


def embeddings():
    weight, index = leaf(5, 3), torch.tensor([0, 2, 2], device=DEVICE)
    bag = torch.ops.aten._embedding_bag(weight, index, torch.tensor([0, 1], device=DEVICE), False, 0)
    torch.ops.aten._embedding_bag_dense_backward(ones(2, 3), index, *bag[1:], 5, False, 0, None)
    torch.ops.aten._embedding_bag_forward_only(weight.detach(), index, torch.tensor([0, 1], device=DEVICE))
    functional.embedding(index, weight.detach(), max_norm=1.0)


def outputs():
    torch.ops.aten._linalg_eigvals(ones(2, 2))
    torch.linalg.eigvals(ones(2, 2), out=empty(torch.complex64))
    torch.ops.aten.adaptive_avg_pool2d.out(ones(1, 4, 4), [2, 2], out=empty())
    torch.ops.aten.adaptive_avg_pool3d.out(ones(1, 4, 4, 4), [2, 2, 2], out=empty())
    torch.ops.aten.adaptive_avg_pool3d_backward.grad_input(ones(1, 2, 2, 2), ones(1, 4, 4, 4), grad_input=empty())
    torch.bucketize(1.0, ones(3))
    torch.eye(3, out=empty())
    for make in (torch.linspace, torch.logspace):
        for start, end in ((0.0, ones()), (ones(), 2.0), (ones(), ones())):
            make(start, end, 3, out=empty())


def forward_derivatives():
    x, tangent = ones(3, 4), ones(3, 4)
    torch.func.jvp(lambda t: functional.glu(t, 1), (x,), (tangent,))
    torch.func.jvp(torch.func.grad(lambda t: functional.glu(t, 1).sum()), (x,), (tangent,))


def operators_of_ours():
    openreg_ops.functional.swiglu(leaf(3, 4), leaf(3, 4)).sum().backward()
    result = openreg_ops.functional.add_rms_norm(leaf(3, 4), leaf(3, 4), leaf(4))
    (result[0] if isinstance(result, tuple) else result).sum().backward()
    weight = leaf(3)
    weight.grad = ones(3)
    openreg_ops.functional.clip_grad_norm_([weight], 1.0)
    torch._assert_async(ones())


CALLS = [
    transforms,
    distributions,
    rotations,
    recurrent_layers,
    normalisations,
    normalisation_over_processes,
    attention,
    nested_tensors,
    embeddings,
    outputs,
    forward_derivatives,
    operators_of_ours,
]
