# SPDX-License-Identifier: BSD-3-Clause
"""Products of integer and 8-bit float matrices, and packed weights, give the CPU's results."""

import pytest
import torch
from parity import DEVICE, check, is_busy

pytestmark = pytest.mark.no_fallback

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def integers(*shape, dtype=torch.int8, low=-100, high=100):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def numbers(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(2)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize("rows", [0, 1, 17])
def test_products_of_integers(dtype, rows):
    left = integers(rows, 32, dtype=dtype, low=0)
    check(torch._int_mm, left, integers(32, 8))
    check(lambda a, b: torch._int_mm(a, b.t()), left, integers(8, 32))
    check(
        lambda a, b: torch._int_mm(a, b, out=torch.empty(rows, 8, dtype=torch.int32, device=a.device)),
        left,
        integers(32, 8),
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_weights_of_eight_bits(dtype):
    for rows in (1, 5):
        check(
            torch._weight_int8pack_mm, numbers(rows, 64, dtype=dtype), integers(32, 64), numbers(32, dtype=dtype).abs()
        )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("group", [32, 64])
def test_weights_of_four_bits(dtype, group):
    def product(x, weights, scales):
        packed = torch._convert_weight_to_int4pack_for_cpu(weights, 1)
        return packed, torch._weight_int4pack_mm_for_cpu(x, packed, group, scales)

    weights, scales = integers(32, 64, dtype=torch.int32, low=0, high=16), numbers(64 // group, 32, 2, dtype=dtype)
    check(product, numbers(3, 64, dtype=dtype), weights, scales)


def test_weights_of_four_bits_for_inputs_that_are_quantized():
    def product(x, weights, scales):
        packed = torch.ops.aten._dyn_quant_pack_4bit_weight(weights, scales, None, 32, 64, 16)
        return torch.ops.aten._dyn_quant_matmul_4bit(x, packed, 32, 64, 16)

    weights = integers(16, 32, dtype=torch.uint8, low=0, high=255)
    for _ in range(2):
        check(product, numbers(3, 64), weights, numbers(16, 2).abs().reshape(16, 2))


def test_weights_of_four_bits_in_torch_ops_quantized():
    def product(x, weights, group, scales):
        return torch.ops.quantized.int4mm_packed_weight_cpu(
            x, torch._convert_weight_to_int4pack_for_cpu(weights, 1), group, scales
        )

    weights, group = integers(32, 64, dtype=torch.int32, low=0, high=16), torch.tensor([32])
    check(product, numbers(3, 64), weights, group, numbers(2, 32, 2))


SCALES = {"one each": ((), ()), "by rows": ((17, 1), (1, 16))}


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize("result", [torch.float32, torch.bfloat16])
def test_products_of_eight_bit_floats(kind, result):
    def product(a, b, one, other, bias):
        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        return torch._scaled_mm(a, b.t(), one, other, bias, out_dtype=result)

    scales = [numbers(*shape).abs() + 0.5 for shape in SCALES[kind]]
    for _ in range(2):
        check(product, numbers(17, 32), numbers(16, 32), *scales, numbers(16, dtype=result))


def test_the_host_goes_on(gate):
    a, b = integers(4, 32).to(DEVICE), integers(32, 8).to(DEVICE)
    gate.close()
    torch._int_mm(a, b)
    torch._weight_int8pack_mm(a.float(), b.t().contiguous(), torch.ones(8, device=DEVICE))
    assert is_busy()


def in_any_words(operation, *values):
    """A mistake that the CPU refuses in the name of its function is refused here with the same type."""
    with pytest.raises((RuntimeError, IndexError, ValueError), match=r".") as expected:
        operation(*values)
    with pytest.raises(expected.type, match=r"."):
        operation(*[value.to(DEVICE) for value in values])
    torch.openreg.synchronize()


X, W, S = numbers(3, 64), integers(32, 64), numbers(32).abs()
PACKED, GROUPS = integers(32, 32, dtype=torch.uint8, low=0), numbers(2, 32, 2)
MISTAKES = (
    (torch._int_mm, integers(3, 4), integers(3, 4)),
    (torch._int_mm, integers(3, 4)[0], integers(4, 3)),
    (torch._int_mm, integers(3, 4).int(), integers(4, 3)),
    (torch._int_mm, integers(3, 4), integers(4, 3).int()),
    (lambda a, b, out: torch._int_mm(a, b, out=out), integers(3, 4), integers(4, 5), torch.empty(3, 5)),
    (lambda a, b, out: torch._int_mm(a, b, out=out), integers(3, 4), integers(4, 5), torch.empty(0).int()),
    (torch._weight_int8pack_mm, X.double(), W, S),
    (torch._weight_int8pack_mm, X, W.int(), S),
    (torch._weight_int8pack_mm, X, W[:, :32], S),
    (torch._weight_int8pack_mm, X, W.t().contiguous().t(), S),
    (torch._weight_int8pack_mm, X, W, S[:3]),
    (torch._weight_int8pack_mm, X, W, S.half()),
    (torch._weight_int8pack_mm, X.t().contiguous().t(), W, S),
    (lambda w: torch._convert_weight_to_int4pack_for_cpu(w, 1), integers(15, 32).int()),
    (lambda w: torch._convert_weight_to_int4pack_for_cpu(w, 1), integers(16, 31).int()),
    (lambda w: torch._convert_weight_to_int4pack_for_cpu(w, 1), integers(16, 32)),
    (lambda w: torch._convert_weight_to_int4pack_for_cpu(w, 1), integers(16).int()),
    (lambda x, w, s: torch._weight_int4pack_mm_for_cpu(x, w, 48, s), X, PACKED, GROUPS),
    (lambda x, w, s: torch._weight_int4pack_mm_for_cpu(x, w, 32, s), X.double(), PACKED, GROUPS),
    (lambda x, w, s: torch._weight_int4pack_mm_for_cpu(x, w, 32, s), X[:, :32].contiguous(), PACKED, GROUPS),
    (lambda x, w, s: torch._weight_int4pack_mm_for_cpu(x, w, 32, s), X, PACKED, GROUPS[:, :31]),
    (lambda x, w, s: torch._weight_int4pack_mm_for_cpu(x, w, 32, s), X, PACKED, GROUPS.half()),
    (lambda a, b, s: torch._scaled_mm(a, b.t(), s, s), X, X, torch.ones(())),
    (
        lambda a, b, s: torch._scaled_mm(a, b, s, s),
        X.to(torch.float8_e4m3fn),
        X.to(torch.float8_e4m3fn),
        torch.ones(()),
    ),
)


@pytest.mark.parametrize("mistake", range(len(MISTAKES)))
def test_a_mistake_is_reported_by_the_call(mistake):
    in_any_words(*MISTAKES[mistake])


def test_too_few_groups_are_refused_where_the_cpu_reads_past_the_end():
    with pytest.raises(RuntimeError, match=r"qScaleAndZeros .* \[2, 32, 2\]"):
        torch._weight_int4pack_mm_for_cpu(X.to(DEVICE), PACKED.to(DEVICE), 32, GROUPS[:1].to(DEVICE))
