# SPDX-License-Identifier: BSD-3-Clause
"""A call with a common dtype that its kernel refuses raises at once: kernel traits list the dtypes of CPU kernels."""

import types

import pytest
import torch
from parity import DEVICE, tensors_in
from structured_samples import OPTIONS, make_samples
from torch.nn import functional
from torch.utils import _pytree as pytree

import openreg_ops._C

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore:.*deprecated"),
    pytest.mark.filterwarnings("ignore:index_reduce.. is in beta"),
]

# By c10::ScalarType's numbers.
NUMBERS = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex64: 9,
    torch.complex128: 10,
    torch.bool: 11,
    torch.bfloat16: 15,
}
REDUCED = {torch.float16, torch.bfloat16}
# How a kernel refuses a dtype. Since torch 2.15 functions that compute shapes do so with the same types of exception.
REFUSAL = (NotImplementedError, TypeError)
# What the CPU's kernel refuses and a GPU's takes: test_compute_dtype.py.
COMPUTED = {
    "abs": {torch.bool},
    "_upsample_bicubic2d_aa": REDUCED,
    "_upsample_bicubic2d_aa_backward": REDUCED,
    "_upsample_bilinear2d_aa": REDUCED,
    "_upsample_bilinear2d_aa_backward": REDUCED,
    "_upsample_lanczos2d_aa": REDUCED,
    "_upsample_lanczos2d_aa_backward": REDUCED,
    "avg_pool3d": REDUCED,
    "avg_pool3d_backward": REDUCED,
    "multi_margin_loss": REDUCED,
    "multi_margin_loss_backward": REDUCED,
    "multilabel_margin_loss_backward": REDUCED,
    "multilabel_margin_loss_forward": REDUCED,
}
# What rules list besides, because some shapes or all of them are refused with another type of exception.
INTEGERS = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
ALSO = {
    "clamp": {torch.bool},  # if the bounds are booleans, too
    "clamp_max": {torch.bool},
    "clamp_min": {torch.bool},
    "convolution_overrideable": INTEGERS - {torch.bool},  # if transposed
    "index_reduce": {torch.bool},
    "norm.ScalarOpt_dim_dtype": set(NUMBERS),  # if the wanted dtype is narrower
    "renorm": INTEGERS,
}


def derivative(name, *arguments, **options):
    """A call of a derivative. What is a function of x is called with it: a gradient, or what forward took or gave."""

    def call(x):
        given, named = pytree.tree_map_only(types.FunctionType, lambda make: make(x), (arguments, options))
        return overload(name)(*given, **named)

    return call


def spread(*shape):
    """The first element of x in this shape."""
    return lambda x: x[:1].expand(shape)


def places(*shape):
    return lambda x: torch.zeros(shape, dtype=torch.int64, device=x.device)


def yes(*shape):
    return lambda x: torch.ones(shape, dtype=torch.bool, device=x.device)


# Gradients of one dtype with all other operands.
VECTOR, MATRIX, IMAGE, VOLUME = spread(3), spread(1, 3), spread(1, 3, 3), spread(1, 3, 3, 3)
DERIVATIVES = {
    "_adaptive_avg_pool2d_backward": derivative("_adaptive_avg_pool2d_backward", IMAGE, IMAGE),
    "_adaptive_avg_pool3d_backward": derivative("_adaptive_avg_pool3d_backward", VOLUME, VOLUME),
    "_cdist_backward": derivative("_cdist_backward", spread(1, 1), MATRIX, MATRIX, 2.0, spread(1, 1)),
    "_ctc_loss_backward": derivative(
        "_ctc_loss_backward", spread(1), spread(2, 1, 3), places(1, 1), [2], [1], spread(1), spread(1, 2, 3), 1
    ),
    "_masked_softmax_backward": derivative("_masked_softmax_backward", VECTOR, VECTOR, yes(3), 0),
    "_pdist_backward": derivative("_pdist_backward", spread(1), lambda x: torch.stack([x, x]), 2.0, spread(1)),
    "_prelu_kernel_backward": derivative("_prelu_kernel_backward", VECTOR, VECTOR, VECTOR),
    "_segment_reduce_backward": derivative(
        "_segment_reduce_backward", spread(1), spread(1), VECTOR, "sum", lengths=lambda x: at(x, 3)
    ),
    "adaptive_avg_pool3d_backward.grad_input": derivative(
        "adaptive_avg_pool3d_backward.grad_input", VOLUME, VOLUME, grad_input=lambda x: x.new_empty(0)
    ),
    "convolution_backward_overrideable": derivative(
        "convolution_backward",
        spread(1, 1, 1),
        spread(1, 1, 3),
        spread(1, 1, 3),
        None,
        [1],
        [0],
        [1],
        False,
        [0],
        1,
        [True, True, False],
    ),
    "fractional_max_pool3d_backward": derivative(
        "fractional_max_pool3d_backward", spread(1, 2, 2, 2), VOLUME, [2, 2, 2], [2, 2, 2], places(1, 2, 2, 2)
    ),
    "glu_backward": derivative("glu_backward", spread(1, 1), spread(1, 2), 1),
    "glu_backward_jvp": derivative("glu_backward_jvp", *[spread(1, n) for n in (2, 1, 2, 1, 2)], 1),
    "glu_jvp": derivative("glu_jvp", spread(1, 1), spread(1, 2), spread(1, 2), 1),
    "grid_sampler_2d_backward": derivative(
        "grid_sampler_2d_backward", spread(1, 1, 2, 2), spread(1, 1, 3, 3), spread(1, 2, 2, 2), 0, 0, False, [True] * 2
    ),
    "grid_sampler_3d_backward": derivative(
        "grid_sampler_3d_backward",
        spread(1, 1, 2, 2, 2),
        spread(1, 1, 3, 3, 3),
        spread(1, 2, 2, 2, 3),
        0,
        0,
        False,
        [True] * 2,
    ),
    "linear_backward": derivative("linear_backward", MATRIX, spread(1, 1), MATRIX, [True] * 3),
    "log_sigmoid_backward": derivative("log_sigmoid_backward", VECTOR, VECTOR, VECTOR),
    "max_pool3d_with_indices_backward": derivative(
        "max_pool3d_with_indices_backward", spread(1, 2, 2, 2), VOLUME, [2], [1], [0], [1], False, places(1, 2, 2, 2)
    ),
    "multi_margin_loss_backward": derivative("multi_margin_loss_backward", lambda x: x[0], MATRIX, places(1), 1, 1.0),
    "multilabel_margin_loss_backward": derivative(
        "multilabel_margin_loss_backward", lambda x: x[0], MATRIX, places(1, 3), 1, MATRIX
    ),
    "native_batch_norm_backward": derivative(
        "native_batch_norm_backward", MATRIX, MATRIX, None, None, None, VECTOR, VECTOR, True, 0.1, [True] * 3
    ),
    "native_group_norm_backward": derivative(
        "native_group_norm_backward", MATRIX, MATRIX, spread(1, 1), spread(1, 1), None, 1, 3, 1, 1, [True, False, False]
    ),
    "native_layer_norm_backward": derivative(
        "native_layer_norm_backward", VECTOR, VECTOR, [3], spread(1), spread(1), None, None, [True, False, False]
    ),
    "nll_loss2d_backward": derivative(
        "nll_loss2d_backward", lambda x: x[0], VOLUME, places(1, 3, 3), None, 1, -100, lambda x: x[0]
    ),
    "reflection_pad2d_backward": derivative("reflection_pad2d_backward", spread(1, 5, 5), IMAGE, [1] * 4),
    "replication_pad2d_backward": derivative("replication_pad2d_backward", spread(1, 5, 5), IMAGE, [1] * 4),
    "replication_pad3d_backward": derivative("replication_pad3d_backward", spread(1, 5, 5, 5), VOLUME, [1] * 6),
}
# Refused in some modes only.
MODES = {
    "div.Tensor_mode:floor": lambda x: torch.div(x, x, rounding_mode="floor"),
    "div.Tensor_mode:trunc": lambda x: torch.div(x, x, rounding_mode="trunc"),
    "scatter_reduce.two:amax": lambda x: x.scatter_reduce(0, torch.tensor([0, 1, 0], device=x.device), x, "amax"),
    "scatter_reduce.two:amin": lambda x: x.scatter_reduce(0, torch.tensor([0, 1, 0], device=x.device), x, "amin"),
    "scatter_reduce.two:mean": lambda x: x.scatter_reduce(0, torch.tensor([0, 1, 0], device=x.device), x, "mean"),
}
# Not structured: written by hand, or described.
BY_HAND = {
    "_adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x.expand(1, 3, 3), 2),
    "_adaptive_avg_pool3d": lambda x: functional.adaptive_avg_pool3d(x.expand(1, 3, 3, 3), 2),
    "_cdist_forward": lambda x: torch.ops.aten._cdist_forward(x[None], x[None], 2.0, None),
    "_ctc_loss": lambda x: torch.ops.aten._ctc_loss(x.expand(2, 1, 3), at(x, 1)[None], [2], [1]),
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": lambda x: (
        torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
            x, torch.ones(1, device=x.device), at(x, 0).int(), at(x, 1), 0, 9
        )
    ),
    "_pdist_forward": lambda x: torch.ops.aten._pdist_forward(torch.stack([x, x])),
    "_prelu_kernel": lambda x: torch.ops.aten._prelu_kernel(x, x),
    "binary_cross_entropy": lambda x: functional.binary_cross_entropy(x, x),
    "binary_cross_entropy_backward": lambda x: torch.ops.aten.binary_cross_entropy_backward(x, x, x),
    "col2im": lambda x: functional.fold(x[0].expand(1, 4, 4), 3, 2),
    "convolution_overrideable": lambda x: torch.conv1d(x.expand(1, 1, 3), x.expand(1, 1, 3)),
    "fake_quantize_per_channel_affine_cachemask": lambda x: torch.fake_quantize_per_channel_affine(
        x, torch.ones(3, device=x.device), at(x, 0, 0, 0).int(), 0, 0, 9
    ),
    "fake_quantize_per_tensor_affine_cachemask": lambda x: torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 9),
    "grid_sampler_2d": lambda x: torch.grid_sampler_2d(x.expand(1, 1, 3, 3), x[:2].expand(1, 2, 2, 2), 0, 0, False),
    "grid_sampler_3d": lambda x: torch.grid_sampler_3d(x.expand(1, 1, 3, 3, 3), x.expand(1, 2, 2, 2, 3), 0, 0, False),
    "hardswish": functional.hardswish,
    "hardswish_": lambda x: functional.hardswish(x, inplace=True),
    "hardswish_backward": lambda x: torch.ops.aten.hardswish_backward(x, x),
    "huber_loss": lambda x: functional.huber_loss(x, x),
    "huber_loss_backward.out": lambda x: torch.ops.aten.huber_loss_backward(x, x, x, 1, 1.0),
    "im2col": lambda x: functional.unfold(x.expand(1, 1, 3, 3), 2),
    "linear": lambda x: functional.linear(x[None], x[None]),
    "log_sigmoid_forward": functional.logsigmoid,
    "max_pool3d_with_indices": lambda x: functional.max_pool3d(x.expand(1, 3, 3, 3), 2, return_indices=True),
    "max_unpool2d": lambda x: torch.ops.aten.max_unpool2d(x[None, None], at(x, 0, 0, 0)[None, None], [2, 6]),
    "max_unpool3d": lambda x: torch.ops.aten.max_unpool3d(
        x[None, None, None], at(x, 0, 0, 0)[None, None, None], [2, 2, 6], [2, 2, 2], [0, 0, 0]
    ),
    "multi_margin_loss": lambda x: functional.multi_margin_loss(x[None], at(x, 0)),
    "multilabel_margin_loss_forward": lambda x: functional.multilabel_margin_loss(x[None], at(x, 0, 0, 0)[None]),
    "native_batch_norm": lambda x: torch.native_batch_norm(x[None], None, None, None, None, True, 0.1, 0.1),
    "native_group_norm": lambda x: torch.native_group_norm(x[None], None, None, 1, 3, 1, 1, 0.1),
    "native_layer_norm": lambda x: torch.native_layer_norm(x, [3], None, None, 0.1),
    "reflection_pad2d": lambda x: functional.pad(x.expand(1, 3, 3), [1, 1, 1, 1], mode="reflect"),
    "segment_reduce": lambda x: torch.segment_reduce(x, "sum", lengths=at(x, 3)),
}


# Until torch 2.14.
if openreg_ops._C._dtype_rules().get("polar.out", (0,))[0]:
    BY_HAND["polar.out"] = lambda x: torch.polar(x, x)


def at(x, *indices):
    """Indices on the device of x."""
    return torch.tensor(indices, device=x.device)


def rules():
    return openreg_ops._C._dtype_rules()


def overload(name):
    base, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), rest or "default")


def in_dtype(args, dtype):
    """The same arguments in another dtype; indices stay."""
    tensors = tensors_in(args)
    has_numbers = any(t.is_floating_point() or t.is_complex() for t in tensors)

    def convert(tensor):
        changes = tensor.is_floating_point() if has_numbers else tensor.dtype == tensors[0].dtype
        return tensor.to(dtype) if changes or tensor.is_complex() else tensor

    return pytree.tree_map_only(torch.Tensor, convert, args)


def refused(operation, exceptions=REFUSAL):
    found = set()
    for dtype in NUMBERS:
        try:
            operation(dtype)
        except exceptions:
            found.add(dtype)
        except RuntimeError:
            pass
    return found


def refused_at_once(operation):
    """The dtypes with which the operation fails on the calling line, of whatever type the exception is."""
    return refused(operation, Exception)


def dtypes_in(bits):
    return {dtype for dtype, number in NUMBERS.items() if bits >> number & 1}


@pytest.mark.parametrize("name", sorted(set(make_samples()) - {mode.partition(":")[0] for mode in MODES}))
def test_the_table_says_what_the_cpus_kernels_refuse(name):
    def call(device, dtype):
        args = in_dtype(make_samples()[name][0], dtype)
        args = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), args)
        return overload(name)(*args, **OPTIONS.get(name, {}))

    measured = refused(lambda dtype: call("cpu", dtype)) - COMPUTED.get(name, set()) - ALSO.get(name, set())
    listed = dtypes_in(rules().get(name, (0, False))[0]) - ALSO.get(name, set())
    assert listed <= measured <= refused_at_once(lambda dtype: call(DEVICE, dtype))
    torch.openreg.synchronize()


@pytest.mark.parametrize("name", [*MODES, *BY_HAND])
def test_the_table_says_what_modes_and_other_kernels_refuse(name):
    operation = {**MODES, **BY_HAND}[name]
    measured = refused(lambda dtype: operation(torch.ones(3).to(dtype)))
    assert dtypes_in(rules()[name][0]) - ALSO.get(name, set()) == measured - COMPUTED.get(name, set())
    assert measured


# The CPU has no kernel for linear_backward, as its linear() is not an operator with a derivative of its own.
@pytest.mark.parametrize("name", sorted(set(DERIVATIVES) - {"linear_backward"}))
def test_derivatives_refuse_at_the_call_what_the_cpus_kernels_refuse(name):
    def call(device, dtype):
        return DERIVATIVES[name](torch.ones(3).to(dtype).to(device))

    measured = refused(lambda dtype: call("cpu", dtype)) - COMPUTED.get(name, set())
    assert measured <= refused_at_once(lambda dtype: call(DEVICE, dtype))
    torch.openreg.synchronize()


def test_the_table_names_no_other_operators():
    tested = {*make_samples(), *MODES, *BY_HAND, *DERIVATIVES}
    assert {name for name, rule in rules().items() if any(rule)} <= tested


@pytest.mark.parametrize("name", sorted(n for n, rule in openreg_ops._C._dtype_rules().items() if rule[0]))
def test_refused_dtypes_fail_on_the_calling_line(name):
    listed = dtypes_in(rules()[name][0])
    dtype = min(listed - ALSO.get(name, set()) or listed, key=NUMBERS.get)
    operation = {**MODES, **BY_HAND, **DERIVATIVES}.get(name)
    if operation is None:
        operation, args = overload(name), in_dtype(make_samples()[name][0], dtype)
    else:
        args = (torch.ones(3).to(dtype),)
    args = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(DEVICE), args)
    kind = RuntimeError if name in ("_cdist_backward", "renorm", "norm.ScalarOpt_dim_dtype") else REFUSAL
    with pytest.raises(kind, match=r"not (implemented|supported|intended)|Expected a floating|only supports floating"):
        operation(*args, **OPTIONS.get(name, {}))
    torch.openreg.synchronize()


def test_the_other_modes_of_such_an_operator_run():
    z = torch.tensor([1 + 1j, 2, 3], device=DEVICE)
    assert torch.div(z, z).cpu().tolist() == [1, 1, 1]
    assert z.scatter_reduce(0, torch.tensor([0, 1, 0], device=DEVICE), z, "sum").cpu().tolist() == [5 + 2j, 4, 3]


MIXED = {
    "mm": lambda x, y: x @ y,
    "bmm": lambda x, y: torch.bmm(x[None], y[None]),
    "baddbmm": lambda x, y: torch.baddbmm(x[None], x[None], y[None]),
    "linalg_cross": lambda x, y: torch.linalg.cross(x, y),
    "nll_loss_forward": lambda x, y: torch.nn.functional.nll_loss(x, torch.zeros(3, device=x.device).long(), y[0]),
    "target": lambda x, y: torch.nn.functional.nll_loss(x, torch.zeros(3, device=x.device).int()),
    "convolution": lambda x, y: torch.conv1d(x[None], y[None]),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", MIXED)
def test_operands_of_two_dtypes_fail_on_the_calling_line(name, dtype):
    for device in ("cpu", DEVICE):
        x, y = torch.ones(3, 3, device=device), torch.ones(3, 3, device=device, dtype=dtype)
        with pytest.raises(RuntimeError, match=r"same dtype|expected scalar type|target dtype"):
            MIXED[name](x, y)
    torch.openreg.synchronize()


def test_refusals_are_recorded_in_no_graph():
    x = torch.ones(2, 2, device=DEVICE)
    flags, out = x > 0, torch.zeros(2, 2, device=DEVICE)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        torch.add(x, x, out=out)
        with pytest.raises(NotImplementedError, match="before the capture"):
            torch.mm(flags, flags)
    graph.replay()
    assert out.sum().item() == 8
