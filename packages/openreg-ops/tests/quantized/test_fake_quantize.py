# SPDX-License-Identifier: BSD-3-Clause
"""Fake quantization gives the CPU's values and gradients, and the observers' scales."""

import pytest
import torch
from parity import DEVICE, check, move_all

pytestmark = pytest.mark.no_fallback

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def leaf(*shape, dtype=torch.float32):
    return torch.linspace(-3, 3, torch.Size(shape).numel()).reshape(shape).to(dtype).requires_grad_()


ROWS = (torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, -1], dtype=torch.int32))
FLAG = torch.tensor([1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_per_tensor(dtype):
    check(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 2, -10, 10), leaf(3, 4, dtype=dtype))
    scale, zero_point = torch.tensor([0.1]), torch.tensor([2], dtype=torch.int32)
    check(
        lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, s, z, -10, 10),
        leaf(3, 4, dtype=dtype),
        scale,
        zero_point,
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_per_channel(dtype):
    check(lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 0, -10, 10), leaf(3, 4, dtype=dtype), *ROWS)
    check(lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z.float(), 1, -10, 10), leaf(4, 3), *ROWS)


@pytest.mark.parametrize(
    "shape",
    [lambda x: x.t(), lambda x: x[::2, 1:], lambda x: x[:0], lambda x: x[None].expand(2, 6, 4), lambda x: x[0, 0]],
)
def test_other_shapes_and_strides(shape):
    check(lambda x: torch.fake_quantize_per_tensor_affine(shape(x), 0.1, 0, -10, 10), leaf(6, 4))


def learnable(name):
    operator = getattr(torch, f"_fake_quantize_learnable_{name}_affine")
    return lambda x, s, z, *axis: operator(x, s, z, *axis, -10, 10, 0.5)


def test_a_scale_that_is_learned():
    for _ in range(2):
        check(
            learnable("per_tensor"),
            leaf(3, 4),
            torch.tensor([0.1], requires_grad=True),
            torch.tensor([1.0], requires_grad=True),
        )
        scale, zero_point = (values.float().requires_grad_() for values in ROWS)
        check(lambda x, s, z: learnable("per_channel")(x, s, z, 0), leaf(3, 4), scale, zero_point)


@pytest.mark.parametrize("by_row", [False, True])
def test_observing_and_quantizing_at_once(by_row):
    """The first call by rows gives the extremes a size; later ones average."""

    def run(device):
        infinite, empty = torch.tensor([float("inf")]), torch.tensor([])
        limits = [empty.clone(), empty.clone()] if by_row else [infinite, -infinite]
        state = [each.to(device) for each in (FLAG, FLAG, *limits, torch.tensor([1.0]), torch.tensor([0]).int())]
        results = []
        for seed in range(3):
            x = torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)).to(device).requires_grad_()
            result = torch.fused_moving_avg_obs_fake_quant(x, *state, 0.1, -128, 127, 0, by_row, False)
            result.square().sum().backward()
            results += [result.detach().cpu(), x.grad.cpu()]
        return results + [each.cpu() for each in state]

    torch.testing.assert_close(run(DEVICE), run("cpu"))


def test_the_choice_of_a_scale():
    x = torch.linspace(-1, 3, 12)
    assert torch._choose_qparams_per_tensor(x.to(DEVICE)) == torch._choose_qparams_per_tensor(x)
    ours, theirs = (torch.choose_qparams_optimized(value, 12, 200, 0.16, 4) for value in (x.to(DEVICE), x))
    torch.testing.assert_close([each.cpu() for each in ours], list(theirs))


def test_weights_are_held_in_the_range_of_float16():
    x = torch.tensor([[1.0, 1e6, -1e6]])
    with pytest.warns(UserWarning, match="out of range"):
        ours = torch._saturate_weight_to_fp16(x.to(DEVICE))
    assert ours.tolist() == [[1.0, 65504.0, -65504.0]]


MISTAKES = (
    lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, 0.1, 20, -10, 10),
    lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 10, -10),
    lambda x, s, z: torch.fake_quantize_per_tensor_affine(x.int(), 0.1, 0, -10, 10),
    lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z + 20, 0, -10, 10),
    lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 1, -10, 10),
    lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z.long(), 0, -10, 10),
    lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s.double(), z, 0, -10, 10),
    lambda x, s, z: torch._fake_quantize_learnable_per_channel_affine(x, s, z.float()[:2], 0, -10, 10),
)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_by_the_call(mistake):
    values = (leaf(3, 4).detach(), *ROWS)
    with pytest.raises(RuntimeError, match=r".") as expected:
        mistake(*values)
    with pytest.raises(expected.type, match=r"."):
        mistake(*move_all(values, DEVICE))
    torch.openreg.synchronize()
