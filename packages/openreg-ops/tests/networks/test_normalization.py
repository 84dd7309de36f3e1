# SPDX-License-Identifier: BSD-3-Clause
"""Layer, group, instance, RMS and weight normalization give the CPU's results and gradients."""

import copy

import pytest
import torch
from parity import DEVICE, assert_same, check, gradients
from torch import nn
from torch.nn import functional

pytestmark = pytest.mark.no_fallback

aten = torch.ops.aten
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
LOOSE = {"rtol": 0.05, "atol": 0.05}


def compare(module, x, tolerance=CLOSE):
    """Runs a module with random parameters on both, forward and backward to its input and parameters."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5)
    ours = copy.deepcopy(module).to(DEVICE)
    theirs_in, ours_in = x.clone().requires_grad_(), x.detach().to(DEVICE).requires_grad_()
    expected, result = module(theirs_in), ours(ours_in)
    assert_same(result, expected, **tolerance)
    reference = gradients(expected, [theirs_in, *module.parameters()])
    assert_same(gradients(result, [ours_in, *ours.parameters()]), reference, strides=False, **tolerance)


@pytest.mark.parametrize(
    ("shape", "normalized"), [((4, 6), (6,)), ((2, 3, 4, 5), (4, 5)), ((7,), (7,)), ((0, 6), (6,))]
)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
def test_layer_and_rms_norm(kind, shape, normalized, affine):
    compare(kind(normalized, elementwise_affine=affine), torch.randn(shape) * 3 + 1)


def test_a_layer_norm_without_bias():
    compare(nn.LayerNorm(6, bias=False), torch.randn(4, 6))


@pytest.mark.parametrize("eps", [None, 1e-2])
def test_eps_of_rms_norm(eps):
    compare(nn.RMSNorm(6, eps=eps), torch.randn(4, 6) * 1e-3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm, lambda width: nn.GroupNorm(2, width)])
def test_dtypes(kind, dtype):
    x = torch.randn(4, 6, dtype=torch.float64).to(dtype)
    compare(kind(6).to(dtype), x, tolerance={} if dtype == torch.float64 else LOOSE)


@pytest.mark.parametrize("kind", [nn.LayerNorm, lambda width: nn.GroupNorm(2, width)])
def test_low_precision_beside_float_parameters(kind):
    compare(kind(6), torch.randn(4, 6).bfloat16(), tolerance=LOOSE)


def test_a_layer_norm_of_a_transposed_input():
    check(
        lambda x, w, b: functional.layer_norm(x.t(), (5,), w, b),
        *(torch.randn(s, requires_grad=True) for s in ((5, 4), 5, 5)),
    )
    check(lambda x, w: functional.rms_norm(x.t(), (5,), w), *(torch.randn(s, requires_grad=True) for s in ((5, 4), 5)))


@pytest.mark.parametrize("shape", [(3, 8), (3, 8, 5), (3, 8, 4, 5), (2, 8, 2, 3, 4), (0, 8, 3)], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(shape, affine):
    compare(nn.GroupNorm(4, 8, affine=affine), torch.randn(shape) * 2 - 1)


def test_group_norm_of_channels_last():
    compare(nn.GroupNorm(2, 8), torch.randn(3, 8, 4, 5).contiguous(memory_format=torch.channels_last))
    check(
        lambda x: functional.group_norm(x.transpose(0, 1), 2), torch.randn(8, 3, 4, requires_grad=True), tolerance=CLOSE
    )


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("track", [True, False])
def test_instance_norm(affine, track):
    compare(nn.InstanceNorm2d(6, affine=affine, track_running_stats=track), torch.randn(3, 6, 4, 5))


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(dim):
    module = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3), dim=dim)
    compare(module, torch.randn(2, 4, 8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("dim", [0, 2])
def test_weight_norm_and_its_norms(dim, dtype):
    v = torch.randn(4, 5, 6).to(dtype).requires_grad_()
    g = (torch.rand([v.size(i) if i == dim else 1 for i in range(3)]) + 0.5).to(dtype).requires_grad_()
    tolerance = {} if dtype == torch.float64 else LOOSE
    ours = aten._weight_norm_interface(v.detach().to(DEVICE), g.detach().to(DEVICE), dim)
    assert_same(ours, aten._weight_norm_interface(v.detach(), g.detach(), dim), **tolerance)
    grad = torch.randn(4, 5, 6).to(dtype)
    arguments = [grad, v.detach(), g.detach(), ours[1].cpu()]
    result = aten._weight_norm_interface_backward(*(each.to(DEVICE) for each in arguments), dim)
    assert_same(result, aten._weight_norm_interface_backward(*arguments, dim), **tolerance)


def test_relatives():
    check(functional.local_response_norm, torch.randn(2, 6, 5, requires_grad=True), 3, tolerance=CLOSE)
    check(torch.renorm, torch.randn(4, 5, requires_grad=True), 2, 0, 1.0, tolerance=CLOSE)
    check(functional.normalize, torch.randn(4, 5, requires_grad=True), tolerance=CLOSE)


@pytest.mark.parametrize("function", [functional.softmax, functional.log_softmax])
def test_softmax_that_widens(function):
    """Half precision in, float out: what autocast asks for."""
    x = torch.randn(4, 5).bfloat16().requires_grad_()
    check(function, x, -1, dtype=torch.float32, tolerance=CLOSE)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_half_gives_float_as_on_a_gpu(name):
    """The CPU's kernels refuse the conversion; they compute it for float operands."""
    function, derivative = getattr(aten, f"_{name}"), getattr(aten, f"_{name}_backward_data")
    x, grad = torch.randn(4, 5).half(), torch.randn(4, 5)
    result = function(x.to(DEVICE), -1, True)
    assert_same(result, function(x.float(), -1, False))
    of_input = derivative(grad.to(DEVICE), result, -1, torch.float16)
    assert_same(of_input, derivative(grad, result.cpu(), -1, torch.float32).half())
    with pytest.raises(RuntimeError, match="supported for Half type only"):
        function(grad.to(DEVICE), -1, True)


def test_mistakes_are_reported_on_the_calling_line():
    x, w = torch.zeros(4, 6, device=DEVICE), torch.ones(6, device=DEVICE)
    with pytest.raises(RuntimeError, match="shape"):
        aten.native_layer_norm(x, [5], None, None, 1e-5)
    with pytest.raises(RuntimeError, match=r"weight .*shape"):
        aten.native_layer_norm(x, [6], w[:5], None, 1e-5)
    with pytest.raises(RuntimeError, match="mixed dtype"):
        aten.native_layer_norm(x, [6], w.double(), None, 1e-5)
    with pytest.raises(RuntimeError, match=r"weight .*shape"):
        aten._fused_rms_norm(x, [6], w[:5], None)
    with pytest.raises(NotImplementedError, match="a weight of 'ComplexFloat'"):
        aten._fused_rms_norm(x, [6], w.to(torch.complex64), None)
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        aten.native_group_norm(x, None, None, 4, 6, 1, 4, 1e-5)
    with pytest.raises(RuntimeError, match="vectors of 6 elements"):
        aten.native_group_norm(x, w[:4], None, 4, 6, 1, 2, 1e-5)
    with pytest.raises(RuntimeError, match=r"\bg\b.*shape"):
        aten._weight_norm_interface(x, w, 0)
    with pytest.raises(RuntimeError, match="openreg:1"):
        aten.native_layer_norm(x, [6], w.to("openreg:1"), None, 1e-5)
