# SPDX-License-Identifier: BSD-3-Clause
"""Layers and losses of torch.nn without meta functions give the CPU's results and gradients."""

import pytest
import torch
from parity import DEVICE, check, check_failure
from structured_samples import spread
from torch.nn import functional
from torch.torch_version import TorchVersion

pytestmark = pytest.mark.no_fallback


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


@pytest.mark.parametrize(
    "activation",
    [
        functional.hardtanh,
        functional.relu6,
        functional.hardswish,
        functional.logsigmoid,
        functional.mish,
        functional.glu,
        lambda x: functional.hardswish(x * 1, inplace=True),
        lambda x: functional.hardtanh(x * 1, inplace=True),
    ],
)
def test_activations(activation):
    check(activation, torch.randn(3, 6).mul(3).requires_grad_())
    check(activation, torch.randn(4, 6, 3).transpose(0, 2).requires_grad_())


def test_prelu():
    check(functional.prelu, leaf(3, 5, 2), torch.rand(5).requires_grad_())
    check(functional.prelu, leaf(3, 5), torch.rand(1).requires_grad_())


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")
def test_forward_derivatives_of_glu():
    def operation(x, tangent):
        return torch.func.jvp(lambda t: functional.glu(t, 1), (x,), (tangent,))

    check(operation, torch.randn(3, 4), torch.randn(3, 4))
    check(
        lambda x, v: torch.func.jvp(torch.func.grad(lambda t: functional.glu(t).sum()), (x,), (v,)), *torch.randn(2, 4)
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction):
    p = torch.rand(4, 5).requires_grad_()
    target, labels = torch.rand(4, 5), torch.tensor([1, 0, 4, 2])
    check(functional.binary_cross_entropy, p, target, reduction=reduction)
    check(functional.binary_cross_entropy, p, target, weight=torch.rand(5), reduction=reduction)
    check(functional.mse_loss, p, target, reduction=reduction)
    check(functional.smooth_l1_loss, p, target, reduction=reduction, beta=0.3)
    check(functional.huber_loss, p, target, reduction=reduction, delta=0.3)
    check(functional.multi_margin_loss, p, labels, reduction=reduction)
    check(functional.multilabel_margin_loss, p, torch.tensor([[1, 3, -1, 0, 0]] * 4), reduction=reduction)


@pytest.mark.parametrize("lengths_on", ["host", "device", "lists"])
@pytest.mark.parametrize("padded", [True, False])
def test_ctc_loss(padded, lengths_on):
    log_probs = torch.randn(12, 3, 6).log_softmax(2).requires_grad_()
    target_lengths = [4, 2, 5]
    targets = torch.randint(1, 6, (3, 5)) if padded else torch.randint(1, 6, (11,))
    given = ([12, 9, 11], target_lengths)
    lengths = given if lengths_on == "lists" else tuple(map(torch.tensor, given))

    def operation(probs, labels):
        there = lengths if lengths_on != "device" else [length.to(probs.device) for length in lengths]
        return functional.ctc_loss(probs, labels, *there, zero_infinity=True, reduction="none")

    check(operation, log_probs, targets)
    check(lambda probs: operation(probs, targets), log_probs)  # labels on the host


def test_ctc_loss_finds_mistakes_on_the_calling_line():
    log_probs, targets = torch.randn(4, 2, 3), torch.ones(2, 2, dtype=torch.int64)
    check_failure(lambda p, t: functional.ctc_loss(p, t, [4, 4], [2, 2], blank=5), log_probs, targets)
    with pytest.raises(RuntimeError, match=r"input_lengths.*\b5"):
        functional.ctc_loss(log_probs.to(DEVICE), targets.to(DEVICE), [4, 5], [2, 2])
    with pytest.raises(RuntimeError, match="at least 3"):
        functional.ctc_loss(log_probs.to(DEVICE), targets.to(DEVICE), [4, 4], [2, 3])


def test_pooling():
    volume = spread(2, 3, 6, 5, 4).requires_grad_()
    check(functional.adaptive_avg_pool3d, volume, (3, None, 2))
    check(functional.adaptive_avg_pool3d, volume, 1)
    check(functional.max_pool3d, volume, 2)
    check(functional.max_pool3d, volume, 3, stride=1, padding=1, return_indices=True)
    check(functional.adaptive_max_pool3d, volume, 2)
    check(lambda x: functional.interpolate(x, size=(3, 2, 2), mode="area"), volume)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling(dims):
    pool = getattr(functional, f"max_pool{dims}d")
    unpool = getattr(functional, f"max_unpool{dims}d")
    x = spread(2, 3, *[6, 4, 4][:dims]).requires_grad_()
    check(lambda t: unpool(*pool(t, 2, return_indices=True), 2), x)


def test_an_index_of_unpooling_out_of_range_is_found_at_the_next_wait():
    x, indices = torch.ones(1, 1, 2, 2, device=DEVICE), torch.full((1, 1, 2, 2), 99, device=DEVICE)
    functional.max_unpool2d(x, indices, 2)
    with pytest.raises(torch.AcceleratorError, match=r"aten::max_unpool2d.*index 99"):
        torch.openreg.synchronize()
    torch.openreg.reset_device()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
def test_padding(mode):
    check(functional.pad, leaf(2, 3, 5), (2, 1), mode=mode)
    check(functional.pad, leaf(2, 3, 5, 4), (2, 1, 0, 3), mode=mode)
    check(functional.pad, leaf(2, 3, 5, 4, 4), (2, 1, 0, 3, 1, 1), mode=mode)
    channels_last = leaf(2, 3, 5, 4).detach().contiguous(memory_format=torch.channels_last).requires_grad_()
    check(functional.pad, channels_last, (1, 1, 1, 1), mode=mode, strides=False)  # the CPU's replication drops them


def test_windows():
    check(functional.unfold, leaf(2, 3, 6, 5), (2, 3), padding=1, stride=(1, 2))
    check(functional.fold, leaf(2, 12, 12), (5, 4), (2, 2))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sampling(mode, padding):
    options = {"mode": mode, "padding_mode": padding, "align_corners": False}
    check(
        functional.grid_sample, leaf(2, 3, 5, 4), torch.rand(2, 3, 6, 2).mul(2.4).sub(1.2).requires_grad_(), **options
    )
    if mode != "bicubic" or torch.__version__ >= TorchVersion("2.15"):
        grid = torch.rand(2, 3, 2, 4, 3).mul(2.4).sub(1.2).requires_grad_()
        check(functional.grid_sample, leaf(2, 3, 5, 4, 3), grid, **options)
    check(
        lambda x, g: functional.grid_sample(x, g, **options),
        torch.randn(1, 2, 4, 4),
        torch.rand(1, 2, 2, 2).requires_grad_(),
    )


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, float("inf")])
def test_distances(p):
    check(torch.cdist, leaf(2, 5, 3), leaf(4, 3), p=p)
    check(torch.cdist, leaf(30, 3), leaf(40, 3), p=p)
    check(functional.pdist, leaf(5, 3), p=p)


@pytest.mark.parametrize(
    "operation",
    [
        lambda image: torch.cdist(image[0, 0], image[0, 0, :, :2]),
        lambda image: functional.multilabel_margin_loss(image[0, 0], image[0, 0, :2].long()),
        lambda image: functional.multi_margin_loss(image[0, 0], image[0, 0].long()),
        lambda image: functional.pad(image, (4, 0, 0, 0), mode="reflect"),
        lambda image: functional.grid_sample(image, image.new_ones(2, 3, 3, 2), align_corners=False),
        lambda image: functional.max_unpool2d(image, image[..., :2].long(), 2),
        lambda image: functional.max_pool3d(image, 2, padding=2),
        lambda image: functional.huber_loss(image, image, delta=0),
    ],
)
def test_shapes_that_do_not_fit_are_refused_on_the_calling_line(operation):
    check_failure(operation, torch.ones(1, 2, 4, 4))


def test_a_gradient_that_does_not_fit_is_refused():
    image, grid = torch.ones(1, 2, 4, 4, device=DEVICE), torch.ones(1, 3, 3, 2, device=DEVICE)
    with pytest.raises(ValueError, match="grad_output"):
        torch.ops.aten.grid_sampler_2d_backward(image[..., :1], image, grid, 0, 0, False, [True, True])
    torch.openreg.synchronize()
