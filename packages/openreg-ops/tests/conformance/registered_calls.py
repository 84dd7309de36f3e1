# SPDX-License-Identifier: BSD-3-Clause
"""Calls of registered operators that no table of samples reaches. Tests of their families compare the results."""

from contextlib import suppress

import quantized_samples
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


def random_keys():
    # Draws by key have kernels for the CPU since torch 2.14, those of integers since 2.15.
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if has("aten::_philox_uniform_", "CPU"):
        key = torch.zeros(2, dtype=torch.uint64, device=DEVICE)
        torch.ops.aten._philox_key_split(key, 2)
        torch.ops.aten._philox_key_fold_in(key, 1)
        torch.ops.aten._philox_key_fold_in.Tensor(key, key[:1])
        torch.ops.aten._philox_normal_(ones(3), key)
        torch.ops.aten._philox_uniform_(ones(3), key)
    if hasattr(torch.ops.aten, "_philox_randint_"):
        torch.ops.aten._philox_randint_(ones(3).int(), key, 0, 5)


def recurrent_layers():
    for layer in (nn.LSTM, nn.GRU, nn.RNN, lambda *sizes: nn.RNN(*sizes, nonlinearity="relu")):
        net = layer(3, 4).to(DEVICE)
        net(leaf(2, 1, 3))[0].sum().backward()
    nn.LSTMCell(3, 4).to(DEVICE)(leaf(1, 3))[0].sum().backward()


def normalizations():
    torch._weight_norm_interface(leaf(3, 4), leaf(3, 1))[0].sum().backward()
    parameters = [ones(2) for _ in range(4)]
    torch.ops.aten._batch_norm_no_update(ones(3, 2), *parameters, 0.1, 1e-5)
    outs = {"out": empty(), "save_mean": empty(), "save_invstd": empty()}
    torch.ops.aten._native_batch_norm_legit.out(ones(3, 2), *parameters, True, 0.1, 1e-5, **outs)


def normalization_over_processes():
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
    query = leaf(1, 2, 3, 4)
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, query, query)[0].sum().backward()


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


def signs_of_python():
    whole = ones(3, dtype=torch.int32)
    for shift in ("lshift", "rshift", "ilshift", "irshift"):
        for amount in (1, whole):
            getattr(whole, f"__{shift}__")(amount)
    torch.remainder(5, ones(3, dtype=torch.int32))


def second_names():
    torch.ops.aten.unique_dim_consecutive(ones(3, 2), 0)
    torch.ops.aten._functional_assert_async.msg(ones(), "never told", ones(1))
    lists = ([ones(3)] for _ in range(3))
    options = {"lr_decay": 0.0, "weight_decay": 0.0, "eps": 1e-10, "maximize": False}
    torch._fused_adagrad_(*lists, [ones()], lr=torch.tensor(0.1), **options)


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


def sparse_tensors():
    torch.sparse.spdiags(ones(1, 4), torch.tensor([0], device=DEVICE), (4, 4))
    pointers, columns = torch.tensor([0, 1, 2], device=DEVICE), torch.tensor([0, 1], device=DEVICE)
    torch.sparse_csr_tensor(pointers, columns, ones(2), (2, 2), check_invariants=True)


def quantized():
    for name, samples in quantized_samples.SAMPLES.items():
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1"):
            quantized_samples.call(name, samples[0], DEVICE)
    scale, zero, x = ones(3), torch.zeros(3, dtype=torch.int32, device=DEVICE), ones(3, 4)
    torch.quantize_per_tensor(x, scale[0], zero[0], torch.qint8).dequantize()
    torch.quantize_per_tensor([x, x], scale[:2], zero[:2], torch.qint8)
    torch.quantize_per_tensor_dynamic(x, torch.qint8, False)
    torch.quantize_per_channel(x, scale, zero.long(), 0, torch.qint8)
    torch._make_per_tensor_quantized_tensor(x.char(), 0.1, 0)
    torch._make_per_channel_quantized_tensor(x.char(), scale, zero.long(), 0)
    x.dequantize()
    weights = [torch.ops.quantized.linear_prepack_fp16(ones(4, 4), ones(4)) for _ in range(2)]
    torch.ops.quantized.make_quantized_cell_params_dynamic(*weights, ones(4), ones(4))
    torch.ops.quantized.make_quantized_cell_params(ones(4, 4), ones(4, 4), ones(4), ones(4))
    by_channel = {"scales": scale, "zero_points": zero, "axis": 0}
    for factory, options in (
        (torch._empty_affine_quantized, {}),
        (torch._empty_per_channel_affine_quantized, by_channel),
    ):
        with suppress(RuntimeError):  # of a dtype that is not quantized
            factory([2], **options, dtype=torch.float, device=DEVICE)
    legacy = ones(1, dtype=torch.uint8)
    for call in (
        lambda: torch.fbgemm_linear_fp16_weight(x, x, x),
        lambda: torch.fbgemm_linear_fp16_weight_fp32_activation(x, x, x),
        lambda: torch.fbgemm_linear_int8_weight(x, x, x, x, 1, 1, x),
        lambda: torch.fbgemm_linear_int8_weight_fp32_activation(x, x, x, x, 1, 1, x),
        lambda: torch.fbgemm_linear_quantize_weight(x),
        lambda: torch.fbgemm_pack_gemm_matrix_fp16(x),
        lambda: torch.fbgemm_pack_quantized_matrix(x),
        lambda: torch.fbgemm_pack_quantized_matrix(x, 1, 1),
        lambda: torch.quantized_lstm_cell(x, [x, x], *[x] * 8, 1, 1, 1, 1),
        lambda: torch.quantized_gru_cell(x, x, *[x] * 8, 1, 1, 1, 1),
        lambda: torch.quantized_rnn_relu_cell(x, x, *[x] * 8, 1, 1, 1, 1),
        lambda: torch.quantized_rnn_tanh_cell(x, x, *[x] * 8, 1, 1, 1, 1),
        lambda: torch.ops.quantized.linear_prepack_fp16_legacy(x),
        lambda: torch.ops.quantized.linear_unpack.legacy(legacy),
        lambda: torch.ops.quantized.linear_unpack_fp16.legacy(legacy),
        lambda: torch.ops._quantized.linear_prepack_fp16_legacy(x),
        lambda: torch.ops._quantized.wrapped_fbgemm_pack_gemm_matrix_fp16(x),
        lambda: torch.ops._quantized.wrapped_fbgemm_linear_fp16_weight(x, x, x, 1),
        lambda: torch.ops._quantized._wrapped_linear_prepack(x, x, x, x),
        lambda: torch.ops._quantized._wrapped_quantized_linear_prepacked(x, x, x, x, x, x, 1),
    ):
        with suppress(NotImplementedError):
            call()


def fake_quantization():
    scale, zero = ones(3), torch.zeros(3, dtype=torch.int32, device=DEVICE)
    torch.fake_quantize_per_tensor_affine(leaf(3, 4), 0.1, 0, -5, 5).sum().backward()
    torch.fake_quantize_per_tensor_affine(leaf(3, 4), scale[:1], zero[:1], -5, 5).sum().backward()
    torch.fake_quantize_per_channel_affine(leaf(3, 4), scale, zero, 0, -5, 5).sum().backward()
    torch._fake_quantize_learnable_per_tensor_affine(leaf(3, 4), leaf(1), leaf(1), -5, 5).sum().backward()
    torch._fake_quantize_learnable_per_channel_affine(leaf(3, 4), leaf(3), leaf(3), 0, -5, 5).sum().backward()
    flags = [ones(1, dtype=torch.long)] * 2
    torch.fused_moving_avg_obs_fake_quant(ones(3, 4), *flags, ones(1), ones(1), ones(1), zero[:1], 0.1, -5, 5, 0)
    torch.choose_qparams_optimized(ones(4), 4, 200, 0.16, 8)
    torch._saturate_weight_to_fp16(ones(3, 4))


def packed_weights():
    integers = ones(16, 32, dtype=torch.int32)
    torch._int_mm(integers.char(), integers.char().t())
    torch._int_mm(integers.char(), integers.char().t(), out=torch.empty(16, 16, dtype=torch.int32, device=DEVICE))
    torch._weight_int8pack_mm(ones(2, 32), integers.char(), ones(16))
    packed = torch._convert_weight_to_int4pack_for_cpu(integers, 1)
    torch._weight_int4pack_mm_for_cpu(ones(2, 32), packed, 32, ones(1, 16, 2))
    packed = torch.ops.aten._dyn_quant_pack_4bit_weight(integers[:, :16].byte(), ones(16, 1), None, 32, 32, 16)
    torch.ops.aten._dyn_quant_matmul_4bit(ones(2, 32), packed, 32, 32, 16)
    floats, one = ones(16, 32).to(torch.float8_e4m3fn), ones(1)
    torch._scaled_mm(floats, floats.t(), one, one, out_dtype=torch.float32)
    torch._scaled_mm(floats, floats.t(), one, one, out_dtype=torch.float32, out=empty())
    # The scaling is tensor-wise (0), without swizzling (0).
    scaled = (floats, floats.t(), [one], [0], [0], [one], [0], [0], None, torch.float32)
    torch.ops.aten._scaled_mm_v2(*scaled)
    torch.ops.aten._scaled_mm_v2.out(*scaled, out=empty())


CALLS = [
    transforms,
    distributions,
    random_keys,
    rotations,
    recurrent_layers,
    normalizations,
    normalization_over_processes,
    attention,
    nested_tensors,
    embeddings,
    outputs,
    signs_of_python,
    second_names,
    forward_derivatives,
    operators_of_ours,
    sparse_tensors,
    quantized,
    fake_quantization,
    packed_weights,
]
