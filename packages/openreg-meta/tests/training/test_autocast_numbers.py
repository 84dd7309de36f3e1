# SPDX-License-Identifier: BSD-3-Clause
"""Under autocast, every operator with a rule gives the bits of a program that casts the arguments itself."""

import pytest
import torch
from torch.nn import functional
from torch.testing._internal.autocast_test_lists import AutocastTestLists

LOWER = (torch.float16, torch.bfloat16)

# Operators that have a kernel on CUDA alone.
CUDA_ONLY = {"cudnn_convolution", "cudnn_convolution_transpose", "_scaled_dot_product_flash_attention"}
# Without an entry in PyTorch's lists: one is refused, the other there since torch 2.14.
NOT_LISTED = {"binary_cross_entropy", "linalg_matrix_sqrth"}

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated:UserWarning"),
    pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim:UserWarning"),
]


def random(*shape):
    return torch.rand(shape, device="openreg")


def products():
    """What PyTorch's lists leave out, or have no arguments for: (name, function, arguments)."""
    matrix, heads = random(4, 4), random(1, 2, 4, 4)
    yield "einsum", torch.einsum, ("ij,jk->ik", matrix, matrix)
    yield "scaled_dot_product_attention", functional.scaled_dot_product_attention, (heads, heads, heads)
    for name, gates in (("_thnn_fused_lstm_cell", 4), ("_thnn_fused_gru_cell", 3)):
        from_input, from_state = random(2, 4 * gates), random(2, 4 * gates)
        biases = random(4 * gates), random(4 * gates)
        yield name, getattr(torch.ops.aten, name), (from_input, from_state, random(2, 4), *biases)


def float32_operators():
    """The same for what runs in float32."""
    aten, matrix, vector = torch.ops.aten, random(4, 4).half(), random(4).half()
    yield "pow", aten.pow.Scalar, (1.7, vector)
    yield "native_layer_norm", aten.native_layer_norm, (matrix, [4], vector, vector, 1e-5)
    yield "frobenius_norm", aten.frobenius_norm.dim, (matrix, [0, 1])
    yield "nuclear_norm", aten.nuclear_norm, (matrix,)
    yield "nuclear_norm", aten.nuclear_norm.dim, (matrix, [0, 1])
    yield "huber_loss", functional.huber_loss, (vector, vector * 2)
    yield "norm", aten.norm.Scalar, (vector, 1)  # torch.norm would call linalg.vector_norm
    yield "norm", aten.norm.ScalarOpt_dim, (matrix, 2, [0])
    yield "linalg_vector_norm", torch.linalg.vector_norm, (vector,)
    yield "linalg_matrix_norm", torch.linalg.matrix_norm, (matrix, 1)
    yield "linalg_matrix_norm", torch.linalg.matrix_norm, (matrix, "fro")
    for name in ("upsample_nearest", "_upsample_nearest_exact"):
        for n in (1, 2, 3):
            yield f"{name}{n}d", getattr(aten, f"{name}{n}d"), (random(1, 2, *[4] * n).half(), [7] * n)
    for name, n in (("linear1d", 1), ("bilinear2d", 2), ("trilinear3d", 3), ("bicubic2d", 2)):
        for full in (f"upsample_{name}", *([f"_upsample_{name}_aa"] if n == 2 else [])):
            yield full, getattr(aten, full), (random(1, 2, *[4] * n).half(), [7] * n, False)


def callables(entries):
    """PyTorch's entries as (name, function, arguments), without those that cannot run here."""
    for name, args, *options in entries:
        if name in CUDA_ONLY or name == "einsum":  # whose entry has an equation for other arguments
            continue
        kwargs = options[0] if options and isinstance(options[0], dict) else {}
        owners = [torch.Tensor] if name.startswith("__") else [torch, torch._C._nn, torch._C._linalg]
        function = next(getattr(owner, name) for owner in owners if hasattr(owner, name))
        yield name, lambda *given, f=function, named=kwargs: f(*given, **named), args


@pytest.fixture(scope="module")
def entries():
    """Every operator with a rule, by what its arguments become."""
    torch.manual_seed(0)
    lists = AutocastTestLists("openreg")
    lower = lists.torch_fp16 + lists.nn_fp16 + lists.linalg_fp16 + lists.methods_fp16
    float32 = lists.torch_fp32 + lists.nn_fp32 + lists.methods_fp32
    return {
        "lower": [*callables(lower), *products()],
        "float32": [*callables(float32), *float32_operators()],
        "promoted": [*callables(lists.torch_need_autocast_promote)],
    }


def cast(value, dtype, source=None):
    """The argument with its floating-point tensors in another type; with `source`, only those of that type."""
    if isinstance(value, torch.Tensor):
        wanted = value.is_floating_point() if source is None else value.dtype is source
        return value.to(dtype) if wanted else value
    return type(value)(cast(item, dtype, source) for item in value) if isinstance(value, list | tuple) else value


def same(actual, expected):
    """Bit for bit, nan included, and of one type and device."""
    if isinstance(expected, torch.Tensor):
        alike = (actual.dtype, actual.device, actual.shape) == (expected.dtype, expected.device, expected.shape)
        return alike and torch.allclose(actual.cpu(), expected.cpu(), rtol=0, atol=0, equal_nan=True)
    return len(actual) == len(expected) and all(map(same, actual, expected))


def dtypes(result):
    return {item.dtype for item in ([result] if isinstance(result, torch.Tensor) else result)}


def check(entries, autocast_type, expected_type):
    assert len(entries) > 10
    wrong = []
    for name, function, args in entries:
        # The lists speak of float16 wherever they mean the lower precision.
        args = cast(args, autocast_type, source=torch.float16)
        with torch.autocast("openreg", dtype=autocast_type):
            actual = function(*args)
        expected = function(*cast(args, expected_type))
        if not same(actual, expected) or dtypes(actual) != {expected_type}:
            wrong.append(name)
    assert wrong == []


@pytest.mark.covers("registration.rules of AutocastPrivateUse1")
@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_products_give_the_numbers_of_an_explicit_cast(entries, dtype):
    check(entries["lower"], dtype, dtype)


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_what_needs_precision_gives_the_numbers_of_float32(entries, dtype):
    check(entries["float32"], dtype, torch.float32)


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_mixed_arguments_give_the_numbers_of_the_widest_type(entries, dtype):
    check(entries["promoted"], dtype, torch.float32)


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_arguments_of_one_type_are_left_in_it(entries, dtype):
    check([(name, function, cast(args, dtype)) for name, function, args in entries["promoted"]], dtype, dtype)


def test_every_operator_with_a_rule_is_compared(entries):
    compared = {name.strip("_") for group in entries.values() for name, *_ in group}
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastPrivateUse1")
    names = {name.removeprefix("aten::").partition(".")[0] for name in registered}
    left_out = {name for name in names if name.strip("_") not in compared}
    assert left_out == (CUDA_ONLY | NOT_LISTED) & names


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "softmax", "log_softmax"])
def test_a_type_that_the_caller_names_wins(name):
    x = random(5)
    given = () if name in ("sum", "prod") else (0,)
    with torch.autocast("openreg"):
        actual = getattr(torch, name)(x, *given, dtype=torch.float64)
    assert same(actual, getattr(torch, name)(x, *given, dtype=torch.float64))
    assert actual.dtype is torch.float64
