# SPDX-License-Identifier: BSD-3-Clause
"""Fused scaled dot-product attention has the right values, gradients and random numbers, and refuses invalid calls."""

import pytest
import torch
from parity import DEVICE, check, gradients
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

pytestmark = pytest.mark.no_fallback

FORWARD = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
TOLERANCES = {
    torch.float64: {"rtol": 1e-9, "atol": 1e-10},
    torch.float32: CLOSE,
    torch.bfloat16: {"rtol": 0.05, "atol": 0.05},
    torch.float16: {"rtol": 0.01, "atol": 0.01},
}


def operands(*batch, queries=5, keys=7, width=8, value_width=8, key_heads=None, dtype=torch.float32):
    key_batch = (*batch[:-1], key_heads or batch[-1])
    shapes = ((*batch, queries, width), (*key_batch, keys, width), (*key_batch, keys, value_width))
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]


def compare(*args, tolerance=CLOSE, **kwargs):
    """Against the CPU, and certainly with the fused kernel."""
    q, k, v, mask = (*args, None)[:4]
    options = {name: value for name, value in kwargs.items() if name in ("is_causal", "enable_gqa")}
    on_device = [None if each is None else each.detach().to(DEVICE) for each in (q, k, v, mask)]
    assert torch._fused_sdp_choice(*on_device, **options) == SDPBackend.OVERRIDEABLE.value
    return check(attention, *args, strides=False, tolerance=tolerance, **kwargs)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("is_causal", [False, True])
def test_dtypes(dtype, is_causal):
    compare(*operands(2, 3, dtype=dtype), is_causal=is_causal, tolerance=TOLERANCES[dtype])


@pytest.mark.parametrize("batch", [(3,), (1, 1), (2, 4)], ids=str)
@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (1, 9), (6, 2)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_shapes(batch, queries, keys, is_causal):
    compare(*operands(*batch, queries=queries, keys=keys), is_causal=is_causal)


@pytest.mark.parametrize("value_width", [1, 5, 16])
@pytest.mark.parametrize("is_causal", [False, True])
def test_values_of_another_width(value_width, is_causal):
    compare(*operands(2, 3, value_width=value_width), is_causal=is_causal)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2])
@pytest.mark.parametrize("value_width", [8, 5])
def test_a_scale(scale, value_width):
    compare(*operands(2, 3, value_width=value_width), scale=scale)


@pytest.mark.parametrize("value_width", [8, 5])
@pytest.mark.parametrize(
    "shape", [(5, 7), (1, 7), (5, 1), (2, 1, 5, 7), (1, 3, 5, 7), (2, 3, 5, 7), (3, 5, 7)], ids=str
)
def test_masks_of_numbers(shape, value_width):
    compare(*operands(2, 3, value_width=value_width), torch.randn(shape))


@pytest.mark.parametrize("value_width", [8, 5])
@pytest.mark.parametrize("shape", [(5, 7), (2, 1, 5, 7), (2, 1, 1, 7)], ids=str)
def test_masks_of_truth_values(shape, value_width):
    compare(*operands(2, 3, value_width=value_width), torch.rand(shape) > 0.4)


def test_a_mask_for_three_dimensions():
    compare(*operands(3), torch.randn(3, 5, 7))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_mask_of_the_same_low_precision(dtype):
    compare(*operands(2, 3, dtype=dtype), torch.randn(5, 7).to(dtype), tolerance=TOLERANCES[dtype])


@pytest.mark.parametrize("value_width", [8, 5])
def test_rows_that_see_nothing_are_zero(value_width):
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    result = compare(*operands(2, 3, value_width=value_width), mask)
    assert result[:, :, 2].abs().sum().item() == 0


@pytest.mark.parametrize("shape", [(5, 7), (2, 1, 1, 7), (2, 3, 5, 7)], ids=str)
def test_gradients_of_masks(shape):
    compare(*operands(2, 3), torch.randn(shape, requires_grad=True))


@pytest.mark.parametrize("differentiable", [False, True])
def test_gradients_where_one_key_takes_all(differentiable):
    """Scores of some hundreds: what rounding leaves of a sum of exponentials must not show in the gradients."""
    tensors = [(each.detach() * 8).requires_grad_() for each in operands(2, 3)]
    compare(*tensors, torch.randn(5, 7, requires_grad=differentiable), tolerance={"rtol": 1e-3, "atol": 1e-3})


@pytest.mark.parametrize("wanted", [0, 1, 2])
@pytest.mark.parametrize("value_width", [8, 5])
def test_one_gradient_alone(wanted, value_width):
    tensors = [each.detach() for each in operands(2, 3, value_width=value_width)]
    tensors[wanted].requires_grad_()
    compare(*tensors)


@pytest.mark.parametrize("key_heads", [1, 2, 3])
@pytest.mark.parametrize("value_width", [8, 5])
@pytest.mark.parametrize("is_causal", [False, True])
def test_heads_that_share_keys(key_heads, value_width, is_causal):
    tensors = operands(2, 6, key_heads=key_heads, value_width=value_width)
    compare(*tensors, is_causal=is_causal, enable_gqa=True)


@pytest.mark.parametrize("heads", [1, 6])
def test_heads_that_share_keys_with_a_mask(heads):
    compare(*operands(2, 6, key_heads=2), torch.randn(2, heads, 5, 7), enable_gqa=True)


def test_operands_that_are_not_contiguous():
    q, k, v = (torch.randn(2, 5, 3, 8, requires_grad=True) for _ in range(3))
    compare(q.detach().transpose(1, 2).requires_grad_(), k.detach().transpose(1, 2), v.detach().transpose(1, 2))
    check(lambda *t: attention(*(each.transpose(1, 2) for each in t)), q, k, v, strides=False, tolerance=CLOSE)
    check(lambda *t: attention(*(each.transpose(2, 3) for each in t)), q, k, v, strides=False, tolerance=CLOSE)
    packed = torch.randn(2, 3, 5, 24, requires_grad=True)
    check(lambda t: attention(*t.chunk(3, dim=-1)), packed, strides=False, tolerance=CLOSE)


def test_the_output_lies_in_memory_as_the_query_does():
    q = torch.randn(2, 5, 3, 8, device=DEVICE).transpose(1, 2)
    assert attention(q, q, q).stride() == q.stride()
    assert attention(q, q, q[..., :4]).transpose(1, 2).is_contiguous()


def test_a_gradient_that_is_expanded():
    ours = [each.detach().to(DEVICE).requires_grad_() for each in operands(2, 3)]
    theirs = [each.detach().cpu().requires_grad_() for each in ours]
    attention(*ours).sum().backward()
    attention(*theirs).sum().backward()
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad.cpu(), expected.grad, **CLOSE)


@pytest.mark.parametrize("sizes", [{"queries": 0}, {"keys": 0}, {"value_width": 0}], ids=str)
def test_empty_sequences(sizes):
    compare(*operands(2, 3, **sizes))


def test_an_empty_batch():
    compare(*operands(0, 3))


@pytest.mark.parametrize("value_width", [8, 5])
def test_long_sequences(value_width):
    compare(*operands(1, 2, queries=300, keys=700, value_width=value_width), is_causal=True)


def test_the_math_path_on_demand():
    q, k, v = (each.detach().to(DEVICE).requires_grad_() for each in operands(2, 3))
    fused = attention(q, k, v)
    with sdpa_kernel([SDPBackend.MATH]):
        assert torch._fused_sdp_choice(q, k, v) == SDPBackend.MATH.value
        math = attention(q, k, v)
        check(attention, *operands(2, 3), strides=False, tolerance=CLOSE)
    assert "Overrideable" in fused.grad_fn.name()
    assert "Overrideable" not in math.grad_fn.name()
    torch.testing.assert_close(fused, math, **CLOSE)


@pytest.mark.parametrize(
    "kernel", [SDPBackend.OVERRIDEABLE, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
)
def test_code_that_asks_for_a_fused_kernel_gets_it(kernel):
    q, k, v = (each.detach().to(DEVICE) for each in operands(2, 3))
    with sdpa_kernel([kernel]):
        assert torch._fused_sdp_choice(q, k, v) == SDPBackend.OVERRIDEABLE.value
        attention(q, k, v)


def test_without_any_kernel():
    q = torch.randn(2, 3, 4, 5, 8, device=DEVICE)
    with sdpa_kernel([SDPBackend.OVERRIDEABLE]), pytest.raises(RuntimeError, match=r"enable SDPBackend\.MATH"):
        attention(q, q, q)


@pytest.mark.parametrize(
    "shapes",
    [
        [(5, 8), (7, 8), (7, 8)],
        [(2, 2, 3, 5, 8), (2, 2, 3, 7, 8), (2, 2, 3, 7, 8)],
        [(2, 3, 5, 8), (1, 3, 7, 8), (1, 3, 7, 8)],
    ],
    ids=str,
)
def test_shapes_that_take_the_math_path(shapes):
    tensors = [torch.randn(shape, requires_grad=True) for shape in shapes]
    assert torch._fused_sdp_choice(*(each.detach().to(DEVICE) for each in tensors)) == SDPBackend.MATH.value
    check(attention, *tensors, strides=False, tolerance=CLOSE)


def test_a_mask_beside_is_causal_is_refused_as_on_a_gpu():
    q = torch.randn(2, 3, 5, 8, device=DEVICE)
    with pytest.raises(RuntimeError, match="is_causal=True"):
        attention(q, q, q, torch.ones(5, 5, device=DEVICE), is_causal=True)


def test_transformed_by_vmap():
    x = torch.randn(4, 2, 3, 5, 8)
    ours = torch.vmap(lambda t: attention(t, t, t))(x.to(DEVICE))
    torch.testing.assert_close(ours.cpu(), attention(x, x, x), **CLOSE)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # PyTorch's own decompositions
@pytest.mark.parametrize("transform", ["functorch", "dual"])
def test_forward_mode_differentiation(transform):
    def run(x, tangent):
        if transform == "functorch":
            return torch.func.jvp(lambda t: attention(t, t, t), (x,), (tangent,))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, tangent)
            return tuple(torch.autograd.forward_ad.unpack_dual(attention(dual, dual, dual)))

    x, tangent = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8)
    ours = run(x.to(DEVICE), tangent.to(DEVICE))
    with sdpa_kernel([SDPBackend.MATH]):  # the CPU's flash kernel has no forward mode
        reference = run(x, tangent)
    for mine, expected in zip(ours, reference, strict=True):
        torch.testing.assert_close(mine.cpu(), expected, **CLOSE)


def dropout(p, seed, value_width=8):
    torch.openreg.manual_seed_all(seed)
    torch.random.default_generator.manual_seed(0)
    tensors = [each.detach().to(DEVICE).requires_grad_() for each in operands(2, 3, value_width=value_width)]
    result = attention(*tensors, dropout_p=p)
    return [each.cpu() for each in (result.detach(), *gradients(result, tensors))]


def test_dropout_is_repeatable_by_seed():
    one, same, other = dropout(0.4, 1), dropout(0.4, 1), dropout(0.4, 2)
    assert all(map(torch.equal, one, same))
    assert not any(map(torch.equal, one, other))


def test_dropout_moves_the_generator():
    q = torch.randn(2, 3, 5, 8, device=DEVICE)
    assert not torch.equal(attention(q, q, q, dropout_p=0.5).cpu(), attention(q, q, q, dropout_p=0.5).cpu())


def test_dropout_zeroes_and_scales():
    keys = 400
    q = torch.zeros(1, 1, 50, keys, device=DEVICE)
    weights = attention(
        q, torch.zeros(1, 1, keys, keys, device=DEVICE), torch.eye(keys)[None, None].to(DEVICE), dropout_p=0.25
    )
    weights = weights.cpu() * keys
    torch.testing.assert_close(weights[weights > 0], torch.full_like(weights[weights > 0], 4 / 3))
    assert abs((weights > 0).float().mean().item() - 0.75) < 0.02


def test_everything_is_dropped():
    assert all(each.abs().max().item() == 0 for each in dropout(1.0, 3))


def test_gradients_under_dropout_agree_with_differences():
    q, k, v = (
        each.detach().double().to(DEVICE).requires_grad_() for each in operands(1, 2, queries=3, keys=4, width=3)
    )

    def function(*tensors):
        torch.openreg.manual_seed_all(5)
        return attention(*tensors, dropout_p=0.3)

    with torch.openreg.fallback_mode("allow"):  # the check itself reduces and selects
        assert torch.autograd.gradcheck(function, (q, k, v))


def test_replays_of_a_graph_drop_anew():
    q = torch.randn(1, 2, 16, 8, device=DEVICE, requires_grad=True)
    graph = torch.accelerator.Graph()
    with torch.openreg.Stream(), graph:
        result = attention(q, q, q, dropout_p=0.5)
        (grad,) = torch.autograd.grad(result.sum(), q)
    seen = []
    for _ in range(2):
        graph.replay()
        seen.append((result.detach().cpu(), grad.cpu()))
    assert not torch.equal(seen[0][0], seen[1][0])
    assert not torch.equal(seen[0][1], seen[1][1])


def test_mistakes_are_reported_on_the_calling_line():
    q = torch.randn(2, 3, 5, 8, device=DEVICE)
    with pytest.raises(RuntimeError, match="broadcasts to the shape of the scores"):
        FORWARD(q, q, q, torch.zeros(4, 5, device=DEVICE))
    with pytest.raises(RuntimeError, match="same batch and width"):
        FORWARD(q, q[..., :4], q)
    with pytest.raises(RuntimeError, match="dropout probability"):
        FORWARD(q, q, q, None, 1.5)
    with pytest.raises(RuntimeError, match="openreg:1"):
        attention(q, q.to("openreg:1"), q)
    with pytest.raises(RuntimeError, match="debug mask"):
        FORWARD(q, q, q, None, 0.0, False, True)


def flash(query, key, value, dropout_p=0.0, is_causal=False, mask=None):
    """Calls the operator that programs contain which were exported on the CPU."""
    return FLASH(query, key, value, dropout_p, is_causal, attn_mask=mask)[0]


@pytest.mark.parametrize("is_causal", [False, True])
def test_flash_attention_of_a_program_that_was_exported_on_the_cpu(is_causal):
    check(flash, *operands(2, 3), is_causal=is_causal, strides=False, tolerance=CLOSE)
    check(flash, *operands(2, 3), mask=torch.randn(5, 7), strides=False, tolerance=CLOSE)


def test_flash_attention_refuses_dropout_and_other_dimensions():
    query, key, value = (each.detach().to(DEVICE) for each in operands(2, 3))
    with pytest.raises(RuntimeError, match=r"flash_attention_for_cpu: has no dropout, but got dropout_p=0\.5"):
        flash(query, key, value, dropout_p=0.5)
    with pytest.raises(RuntimeError, match="flash_attention_for_cpu: expected a query of 4 dimensions"):
        flash(query[0], key[0], value[0])
