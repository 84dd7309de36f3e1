# SPDX-License-Identifier: BSD-3-Clause
"""Calls of every operator on quantized tensors, and functions that compare their results with the CPU."""

import warnings
from functools import cache

import torch
from parity import DEVICE
from torch.utils import _pytree as pytree

QUANTIZED = torch.ops.quantized


def numbers(*shape, seed=3):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 2


def quantized(*shape, dtype=torch.quint8, scale=0.05, zero_point=64, seed=3):
    return torch.quantize_per_tensor(numbers(*shape, seed=seed), scale, zero_point, dtype)


def signed(*shape, seed=4):
    return quantized(*shape, dtype=torch.qint8, zero_point=0, seed=seed)


def per_channel(*shape, axis=0, dtype=torch.qint8):
    scales = torch.linspace(0.02, 0.08, shape[axis], dtype=torch.float64)
    return torch.quantize_per_channel(numbers(*shape), scales, torch.zeros(shape[axis], dtype=torch.long), axis, dtype)


def by_floats(*shape, dtype=torch.quint8):
    """Rows whose zero points are floating-point numbers, as embeddings have them."""
    scales, zero_points = torch.linspace(0.02, 0.08, shape[0]), torch.linspace(-1, 1, shape[0])
    return torch.quantize_per_channel(numbers(*shape), scales, zero_points, 0, dtype)


def to_device(values, device=DEVICE):
    """Tensors moved, each to its own memory; packed weights and numbers as they are."""
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.clone().to(device), values)


def parameters_of(tensor):
    if tensor.qscheme() == torch.per_tensor_affine:
        return tensor.q_scale(), tensor.q_zero_point()
    return (
        tensor.q_per_channel_scales().tolist(),
        tensor.q_per_channel_zero_points().tolist(),
        tensor.q_per_channel_axis(),
    )


def assert_equal(ours, theirs, *, strides=True):
    """Integers and quantizers are the same, dense numbers as near as one kernel's are, and ours are on the device."""
    mine, others = pytree.tree_leaves(ours), pytree.tree_leaves(theirs)
    assert len(mine) == len(others)
    for one, other in zip(mine, others, strict=True):
        if not isinstance(other, torch.Tensor):
            assert one == other
            continue
        assert one.device.type == DEVICE
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert not strides or other.numel() < 2 or one.stride() == other.stride()
        if other.is_quantized:
            assert (one.qscheme(), parameters_of(one)) == (other.qscheme(), parameters_of(other))
            assert one.int_repr().cpu().equal(other.int_repr())
        else:
            torch.testing.assert_close(one.cpu(), other, equal_nan=True)


def overload(name):
    """The operator of a name as ``aten::add.Tensor``."""
    namespace, _, rest = name.partition("::")
    base, _, form = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), form or "default")


def packed_by(engine):
    """Makes a function pack for this engine of PyTorch's."""

    def decorate(function):
        def pack(*args, **kwargs):
            before = torch.backends.quantized.engine
            try:
                torch.backends.quantized.engine = engine
                return function(*args, **kwargs)
            finally:
                torch.backends.quantized.engine = before

        return pack

    return decorate


@cache
def linear_weights(*, per_row=False, bias=True):
    weight = per_channel(5, 8) if per_row else signed(5, 8)
    return QUANTIZED.linear_prepack(weight, numbers(5) if bias else None)


@cache
def half_weights():
    return QUANTIZED.linear_prepack_fp16(numbers(5, 8), numbers(5))


@cache
def convolution_weights(dims, *, transposed=False, outputs=6):
    weight = signed(4, outputs, *[3] * dims) if transposed else per_channel(outputs, 4, *[3] * dims)
    ones, padding = [1] * dims, [0] * dims
    name = f"conv_transpose{dims}d_prepack" if transposed else f"conv{dims}d_prepack"
    more = [padding] if transposed else []
    return getattr(QUANTIZED, name)(weight, numbers(outputs), ones, [1] * dims, *more, ones, 1)


@cache
def cell_weights(gates):
    return [QUANTIZED.linear_prepack(signed(4 * gates, width), numbers(4 * gates)) for width in (6, 4)]


@cache
def recurrent_weights(gates):
    zeros = torch.zeros(4 * gates)
    return [QUANTIZED.make_quantized_cell_params_dynamic(*cell_weights(gates), zeros, zeros, False)]


@cache
def embedding(bits):
    return QUANTIZED.embedding_bag_prepack(by_floats(10, 16, dtype=torch.quint8 if bits == 8 else torch.quint4x2))


def rows_of(bits):
    """A table of embeddings whose rows begin or end with their scale."""
    pack = "embedding_bag_byte_prepack" if bits == 8 else f"embedding_bag_{bits}bit_prepack"
    return getattr(QUANTIZED, pack)(numbers(10, 16))


IMAGE, VOLUME, LINE = (2, 4, 6, 6), (2, 4, 5, 5, 5), (2, 4, 9)
OUT = {"scale": 0.1, "zero_point": 10}
ROWS, BAGS = torch.tensor([1, 4, 2, 9, 9]), torch.tensor([0, 2, 3])


def all_signs(name):
    """The same call on both kinds of bytes."""
    return [(name(quantized),), (name(signed),)]


def comparisons():
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield f"aten::{name}.Tensor", [(quantized(3, 4), quantized(3, 4, seed=5)), (quantized(3, 4), numbers(4))]
        yield f"aten::{name}.Scalar", [(quantized(3, 4), 0.5)]
        out = torch.empty(3, 4, dtype=torch.bool)
        yield f"aten::{name}.Tensor_out", [(quantized(3, 4), quantized(3, 4, seed=5), {"out": out})]
        yield f"aten::{name}.Scalar_out", [(quantized(3, 4), 0.5, {"out": out})]


def arithmetic():
    for name in ("add", "mul"):
        for relu in ("", "_relu"):
            both, dims = (quantized(3, 4), quantized(3, 4, seed=5)), (quantized(3, 4), quantized(1, 4, seed=5))
            kind = f"quantized::{name}{relu}"
            yield kind, [(*both, 0.1, 10), (*dims, 0.1, 10), (signed(3, 4), signed(3, 4, seed=6), 0.1, 0)]
            yield f"{kind}.Scalar", [(quantized(3, 4), 2.0), (quantized(3, 4), -3)]
            yield f"{kind}.Scalar2", [(2.0, quantized(3, 4))]
            yield f"{kind}.Scalar_out", [(quantized(3, 4), 0.5, {"out": quantized(3, 4)})]
            yield f"{kind}.out", [(*both, {"out": quantized(3, 4)})]
            yield f"{kind}_out", [(*both, {"out": quantized(3, 4)})]
            scalar = f"quantized::{name}_scalar{relu}"
            yield scalar, [(quantized(3, 4), 2.0), (quantized(3, 4), -0.5)]
            yield f"{scalar}.Tensor", [(quantized(3, 4), torch.tensor(2.0)), (quantized(3, 4), torch.tensor(-0.5))]
            yield f"{scalar}_out", [(quantized(3, 4), 0.5, {"out": quantized(3, 4)})]
            yield f"{scalar}_out.Tensor", [(quantized(3, 4), torch.tensor(0.5), {"out": quantized(3, 4)})]


def normalizations():
    shapes = {"": IMAGE, "1d": LINE, "2d": IMAGE, "3d": VOLUME}
    statistics = (numbers(4), numbers(4, seed=8), numbers(4, seed=9), numbers(4).abs() + 0.1)
    for dims, shape in shapes.items():
        yield f"quantized::batch_norm{dims}", [(quantized(*shape), *statistics, 1e-5, 0.1, 10)]
        yield f"quantized::batch_norm{dims}_relu", [(quantized(*shape), *statistics, 1e-5, 0.1, 10)]
    affine = (numbers(4), numbers(4, seed=8), 1e-5, 0.1, 10)
    yield "quantized::layer_norm", [(quantized(3, 4), [4], *affine), (quantized(3, 4), [4], None, None, 1e-5, 0.1, 10)]
    yield "quantized::group_norm", [(quantized(*IMAGE), 2, *affine)]
    yield "quantized::instance_norm", [(quantized(*IMAGE), *affine)]
    yield "aten::quantized_batch_norm", [(quantized(*IMAGE), *statistics, 1e-5, 0.1, 10)]


def convolutions():
    for dims, shape in ((1, LINE), (2, IMAGE), (3, VOLUME)):
        weights, back = convolution_weights(dims), convolution_weights(dims, transposed=True)
        for relu in ("", "_relu"):
            name = f"quantized::conv{dims}d{relu}"
            yield name if dims == 1 else f"{name}.new", [(quantized(*shape), weights, 0.2, 30)]
            if dims > 1:
                legacy = ([1] * dims, [1] * dims, [1] * dims, 1, 0.2, 30)
                yield name, [(quantized(*shape), weights, *legacy)]
        yield f"quantized::conv{dims}d_dynamic", [(numbers(*shape), weights)]
        yield f"quantized::conv_transpose{dims}d", [(quantized(*shape), back, 0.2, 30)]
        yield f"quantized::conv_transpose{dims}d_dynamic", [(numbers(*shape), back, False)]
    same = packed_by("onednn")(convolution_weights.__wrapped__)(2, outputs=4)
    for relu in ("", "_relu"):
        yield f"quantized::conv2d_add{relu}", [(quantized(*IMAGE), quantized(*IMAGE, seed=5), same, 0.2, 30)]


def linear_layers():
    weights = [linear_weights(), linear_weights(per_row=True), linear_weights(bias=False)]
    for name in ("linear", "linear_relu"):
        yield f"quantized::{name}", [(quantized(3, 8), each, 0.2, 30) for each in weights]
        yield f"quantized::{name}_dynamic", [(numbers(3, 8), each) for each in weights]
        yield f"quantized::{name}_dynamic_fp16", [(numbers(3, 8), half_weights())]
    fused = packed_by("onednn")(linear_weights.__wrapped__)()
    yield "quantized::linear_leaky_relu", [(quantized(3, 8), fused, 0.2, 30, 0.1)]
    yield "quantized::linear_tanh", [(quantized(3, 8), fused, 0.2, 30)]
    yield "quantized::linear_dynamic_fp16_unpacked_weight", [(numbers(3, 8), numbers(5, 8), numbers(5))]
    blocks = packed_by("fbgemm")(torch.ops.sparse.qlinear_prepack)(signed(8, 8), numbers(8), 1, 4)
    yield "sparse::qlinear", [(quantized(3, 8), blocks, 0.2, 30)]
    yield "sparse::qlinear_relu", [(quantized(3, 8), blocks, 0.2, 30)]
    blocks = packed_by("qnnpack")(torch.ops.sparse.qlinear_prepack)(signed(8, 8), numbers(8), 1, 4)
    yield "sparse::qlinear_dynamic", [(numbers(3, 8), blocks)]
    for relu in ("", "_relu"):
        name = f"quantized::linear_with_input_q_dq_qweight_dq{relu}_output_fp32"
        yield name, [(numbers(3, 8), 0.05, 64, linear_weights())]


def recurrent_layers():
    x, hidden = numbers(3, 6), numbers(3, 4)
    for cell, gates in (("lstm", 4), ("gru", 3), ("rnn_relu", 1), ("rnn_tanh", 1)):
        state = [hidden, numbers(3, 4, seed=7)] if cell == "lstm" else hidden
        biases = (torch.zeros(4 * gates), numbers(4 * gates))
        yield f"quantized::quantized_{cell}_cell_dynamic", [(x, state, *cell_weights(gates), *biases)]
    sequence, state = numbers(5, 3, 6), numbers(1, 3, 4)
    options = {"dtype": torch.qint8, "use_dynamic": True}
    lstm = ([state, numbers(1, 3, 4, seed=7)], recurrent_weights(4), True, 1, 0.0, False, False)
    gru = (state, recurrent_weights(3), True, 1, 0.0, False, False)
    packed = torch.nn.utils.rnn.pack_padded_sequence(sequence, [5, 4, 2])
    yield "aten::quantized_lstm.input", [(sequence, *lstm, False, options)]
    yield "aten::quantized_gru.input", [(sequence, *gru, False)]
    yield "aten::quantized_lstm.data", [(packed.data, OnHost(packed.batch_sizes), *lstm, options)]
    yield "aten::quantized_gru.data", [(packed.data, OnHost(packed.batch_sizes), *gru)]


def weights_of_four_bits():
    packed = torch._convert_weight_to_int4pack_for_cpu((numbers(32, 64).abs() * 4).int(), 1)
    sample = (numbers(3, 64), packed, torch.tensor([32]), numbers(2, 32, 2, seed=6))
    yield "quantized::int4mm_packed_weight_cpu", [sample]


def embeddings():
    offsets = (ROWS, BAGS)
    yield "quantized::embedding_byte", [(embedding(8), ROWS)]
    yield "quantized::embedding_4bit", [(embedding(4), ROWS)]
    yield (
        "quantized::embedding_bag_byte",
        [(embedding(8), *offsets), (embedding(8), *offsets, False, 0, False, None, None, True)],
    )
    yield "quantized::embedding_bag_4bit", [(embedding(4), *offsets)]
    for bits, name in ((8, "byte"), (4, "4bit"), (2, "2bit")):
        packed, table = rows_of(bits), numbers(10, 16)
        yield f"quantized::embedding_bag_{name}_rowwise_offsets", [(packed, *offsets)]
        yield f"quantized::embedding_bag_{name}_prepack", [(table,)]
        yield f"quantized::embedding_bag_{name}_unpack", [(packed,)]
        limits = torch.stack(list(table.aminmax(dim=1)), 1)
        yield f"quantized::embedding_bag_{name}_prepack_with_rowwise_min_max", [(table, limits)]


def poolings():
    square, volume = ([3, 3], [2, 2], [1, 1], [1, 1], False), ([3] * 3, [2] * 3, [1] * 3, [1] * 3, False)
    yield "aten::quantized_max_pool1d", [(quantized(*LINE), [3], [2], [1], [1], False)]
    yield "aten::quantized_max_pool2d", [(quantized(*IMAGE), *square), (signed(*IMAGE), *square)]
    yield "aten::quantized_max_pool3d", [(quantized(*VOLUME), *volume)]
    yield "quantized::max_pool1d", [(quantized(*LINE), [3], [2], [1], [1], False)]
    integers = torch.arange(288).reshape(IMAGE).to(torch.uint8)
    yield "quantized::max_pool2d", [(quantized(*IMAGE), *square), (integers, *square)]
    yield "aten::avg_pool2d", [(quantized(*IMAGE), [3, 3], [2, 2], [1, 1])]
    yield "aten::avg_pool3d", [(quantized(*VOLUME), [3] * 3, [2] * 3, [1] * 3)]
    yield "aten::_adaptive_avg_pool2d", [(quantized(*IMAGE), [2, 2])]
    yield "aten::_adaptive_avg_pool3d", [(quantized(*VOLUME), [2, 2, 2])]
    yield "aten::adaptive_avg_pool3d.out", [(quantized(*VOLUME), [2, 2, 2], {"out": quantized(2, 4, 2, 2, 2)})]
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        yield f"aten::{name}", [(quantized(*IMAGE), [9, 9])]
    yield "aten::upsample_bilinear2d", [(quantized(*IMAGE), [9, 9], False)]
    for name in ("upsample_nearest3d", "_upsample_nearest_exact3d"):
        yield f"aten::{name}", [(quantized(*VOLUME), [9, 9, 9])]
    grid = numbers(2, 5, 5, 2).clamp(-1, 1)
    yield "aten::grid_sampler_2d", [(quantized(*IMAGE), grid, 0, 0, False)]
    yield "aten::reflection_pad1d.out", [(quantized(*LINE), [1, 2], {"out": quantized(2, 4, 12)})]
    yield "aten::reflection_pad2d", [(quantized(*IMAGE), [1, 2, 1, 2])]
    yield "aten::reflection_pad2d.out", [(quantized(*IMAGE), [1, 2, 1, 2], {"out": quantized(2, 4, 9, 9)})]
    yield "aten::channel_shuffle", [(quantized(*IMAGE), 2)]


def activations():
    def both(*rest):
        return [(quantized(3, 4), *rest), (signed(3, 4), *rest)]

    yield "aten::relu", [*both(), (quantized(3, 4, dtype=torch.qint32),)]
    yield "aten::relu_", both()
    for name in ("sigmoid", "tanh", "hardsigmoid"):
        yield f"aten::{name}", both()
    yield "aten::hardsigmoid.out", [(quantized(3, 4), {"out": quantized(3, 4)})]
    yield "aten::gelu", both()
    yield "aten::gelu_", both()
    yield "aten::clamp", [*both(-0.5, 0.5), *both(None, 0.5)]
    yield "aten::hardtanh", both(-0.5, 0.5)
    yield "aten::hardtanh_", both(-0.5, 0.5)
    yield "aten::hardtanh.out", [(quantized(3, 4), -0.5, 0.5, {"out": quantized(3, 4)})]
    yield "aten::leaky_relu", both(0.2)
    yield "aten::leaky_relu_", both(0.2)
    yield "aten::leaky_relu.out", [(quantized(3, 4), 0.2, {"out": quantized(3, 4)})]
    yield "aten::threshold", both(0.2, 0.1)
    yield "aten::_prelu_kernel", [(quantized(3, 4), quantized(1, 4, seed=5))]
    yield "quantized::prelu", [(quantized(3, 4), quantized(4, seed=5), 0.1, 10)]
    yield "quantized::celu", both(0.1, 10)
    yield "quantized::elu", both(0.1, 10)
    yield "quantized::hardswish", both(0.1, 10)
    yield "quantized::sigmoid", both(0.01, 0)
    yield "quantized::softmax", [(quantized(3, 4), 1, 1 / 256, 0)]
    yield "quantized::leaky_relu", both(0.2, False, 0.1, 10)
    yield "quantized::relu6", [*both(), *both(True)]
    yield "quantized::clamp", both(-0.5, 0.5)
    yield "quantized::threshold", both(0.2, 0.1)
    yield "quantized::dropout", both(0.1, 10)


def moves():
    pair = [quantized(3, 4), quantized(3, 4, scale=0.02, seed=5)]
    yield "aten::cat", [(pair, 0), (pair, 1)]
    yield "aten::cat.out", [(pair, 0, {"out": quantized(6, 4)})]
    for relu in ("", "_relu"):
        yield f"quantized::cat{relu}", [(pair, 0, 0.1, 10), (pair, 1, None, None)]
        yield f"quantized::cat{relu}_out", [(pair, 0, {"out": quantized(6, 4)})]
    yield "quantized::matmul", [(quantized(2, 3, 4), quantized(2, 4, 3, seed=5), 0.5, 50)]
    yield "aten::fill_.Scalar", [(quantized(3, 4), 0.7)]
    yield "aten::fill_.Tensor", [(quantized(3, 4), torch.tensor(0.7))]
    yield "aten::flip", [(quantized(3, 4), [0]), (quantized(3, 4), [0, 1])]
    mask = numbers(3, 4, seed=6) > 0
    yield "aten::masked_fill_.Scalar", [(quantized(3, 4), mask, 0.7)]
    yield "aten::masked_fill_.Tensor", [(quantized(3, 4), mask, torch.tensor(0.7))]
    index = torch.tensor([2, 0])
    yield "aten::index_select", [(quantized(3, 4), 0, index), (quantized(3, 4), 1, index)]
    yield "aten::index_select.out", [(quantized(3, 4), 0, index, {"out": quantized(2, 4)})]
    yield (
        "aten::index.Tensor",
        [(quantized(3, 4), [index]), (quantized(3, 4), [None, index]), (quantized(3, 4), [mask])],
    )
    yield (
        "aten::_index_put_impl_",
        [(quantized(3, 4), [index], numbers(2, 4)), (quantized(3, 4), [mask], torch.tensor(0.3))],
    )


def reductions():
    yield "aten::max", [(quantized(3, 4),)]
    yield "aten::min", [(quantized(3, 4),)]
    yield "aten::max.unary_out", [(quantized(3, 4), {"out": quantized()})]
    yield "aten::min.unary_out", [(quantized(3, 4), {"out": quantized()})]
    yield "aten::max.dim", [(quantized(3, 4), 1), (quantized(3, 4), 0, True)]
    yield "aten::min.dim", [(quantized(3, 4), 1)]
    yield "aten::mean.dim", [(quantized(3, 4), [1]), (quantized(*IMAGE), [2, 3], True)]
    yield "aten::mean.out", [(quantized(3, 4), [1], {"out": quantized(3)})]
    yield "aten::std.correction", [(quantized(3, 4), [1], {"correction": 1})]
    yield "aten::std.correction_out", [(quantized(3, 4), [1], {"correction": 1, "out": quantized(3)})]
    yield "aten::sort.stable", [(quantized(3, 4), {"stable": True}), (quantized(3, 4), {"stable": False, "dim": 0})]
    yield "aten::topk", [(quantized(3, 4), 2), (quantized(3, 4), 2, 0, False)]


# What one engine alone has.
ENGINES = {
    "quantized::conv2d_add": "onednn",
    "quantized::conv2d_add_relu": "onednn",
    "quantized::linear_leaky_relu": "onednn",
    "quantized::linear_tanh": "onednn",
    "sparse::qlinear": "fbgemm",
    "sparse::qlinear_relu": "fbgemm",
    "sparse::qlinear_dynamic": "qnnpack",
}


class OnHost:
    """A tensor that an operator takes on the host."""

    def __init__(self, tensor):
        self.tensor = tensor


FAMILIES = (
    comparisons,
    arithmetic,
    normalizations,
    convolutions,
    linear_layers,
    recurrent_layers,
    weights_of_four_bits,
    embeddings,
    poolings,
    activations,
    moves,
    reductions,
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # quantized tensors are deprecated, which PyTorch says once in a process
    SAMPLES = {name: samples for family in FAMILIES for name, samples in family()}


def call(name, sample, device):
    """The operator on a sample of its own: the result, and what it wrote into. Some kernels of the CPU give another
    tensor than the one to be written, which stays as it was: there the result counts."""
    arguments = [value.tensor if isinstance(value, OnHost) else value for value in to_device(sample, device)]
    options = arguments.pop() if isinstance(arguments[-1], dict) else {}
    engine = torch.backends.quantized.engine
    try:
        torch.backends.quantized.engine = ENGINES.get(name, engine)
        result = overload(name)(*arguments, **options)
        torch.openreg.synchronize()
    finally:
        torch.backends.quantized.engine = engine
    if "out" in options:
        return result, result if device == "cpu" else options["out"]
    return result, arguments[0] if name.endswith("_") or "_." in name else None
