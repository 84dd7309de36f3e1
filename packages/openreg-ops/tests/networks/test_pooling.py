# SPDX-License-Identifier: BSD-3-Clause
"""Pooling, padding and resampling of torch.nn give the CPU's results and gradients."""

import pytest
import torch
from parity import DEVICE, check
from torch.nn import functional

pytestmark = pytest.mark.no_fallback


def image(*shape):
    """No two elements are equal."""
    count = torch.Size(shape).numel()
    return (torch.randperm(count).float() / count).view(shape).requires_grad_()


OPERATIONS = {
    "max_pool2d": lambda t: functional.max_pool2d(t, 2),
    "max_pool2d windows": lambda t: functional.max_pool2d(t, 3, stride=2, padding=1, dilation=1, ceil_mode=True),
    "max_pool2d indices": lambda t: functional.max_pool2d(t, 2, return_indices=True),
    "avg_pool2d": lambda t: functional.avg_pool2d(t, 2),
    "avg_pool2d windows": lambda t: functional.avg_pool2d(t, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "adaptive_avg_pool2d": lambda t: functional.adaptive_avg_pool2d(t, (3, 2)),
    "adaptive_avg_pool2d one": lambda t: functional.adaptive_avg_pool2d(t, 1),
    "adaptive_max_pool2d": lambda t: functional.adaptive_max_pool2d(t, (3, 2)),
    "upsample nearest": lambda t: functional.interpolate(t, scale_factor=2),
    "upsample bilinear": lambda t: functional.interpolate(t, size=(5, 11), mode="bilinear", align_corners=False),
    "pad zero": lambda t: functional.pad(t, (1, 2, 0, 1)),
    "pad replicate": lambda t: functional.pad(t, (1, 2, 0, 1), mode="replicate"),
}


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_images(name, memory_format):
    x = image(2, 3, 8, 9).detach().contiguous(memory_format=memory_format).requires_grad_()
    fallback = "allow" if name == "pad replicate" else "error"
    with torch.openreg.fallback_mode(fallback):
        check(OPERATIONS[name], x, strides=name != "pad replicate")


@pytest.mark.parametrize("name", [name for name in OPERATIONS if "pool" in name])
def test_one_image_without_a_batch(name):
    check(OPERATIONS[name], image(3, 8, 9))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"])
def test_dtypes(name, dtype):
    check(OPERATIONS[name], torch.randn(2, 3, 8, 8).to(dtype).requires_grad_())


def test_volumes_and_lines():
    check(lambda t: functional.avg_pool3d(t, 2), image(2, 3, 4, 4, 4))
    check(lambda t: functional.max_pool1d(t, 2), image(2, 3, 8), strides=False)
    check(lambda t: functional.avg_pool1d(t, 2), image(2, 3, 8))


def test_a_strided_operand():
    check(OPERATIONS["adaptive_avg_pool2d"], image(2, 9, 8, 3).detach().transpose(1, 3).requires_grad_(), strides=False)


def test_an_empty_batch():
    check(OPERATIONS["adaptive_avg_pool2d"], torch.zeros(0, 3, 8, 8))


@pytest.mark.parametrize(
    "operation",
    [
        lambda: functional.adaptive_avg_pool2d(torch.zeros(2, 3, 0, 4, device=DEVICE), 2),
        lambda: functional.adaptive_avg_pool2d(torch.zeros(4, device=DEVICE), 2),
        lambda: functional.adaptive_avg_pool2d(torch.zeros(2, 3, 4, 4, device=DEVICE), (2, -1)),
        lambda: functional.max_pool2d(torch.zeros(2, 3, 1, 1, device=DEVICE), 2),
        lambda: functional.avg_pool2d(torch.zeros(2, 3, 4, 4, device=DEVICE), 2, padding=2),
    ],
)
def test_mistakes_are_found_on_the_calling_line(operation):
    with pytest.raises((RuntimeError, ValueError)):
        operation()
    torch.openreg.synchronize()


@pytest.mark.parametrize("name", ["adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward"])
def test_no_maximum_is_no_place_for_adaptive_pooling(name):
    """Its kernels write where an index leads, and -1 leads before the gradient."""
    dims = 4 if "3d" in name else 3
    grad, x = torch.ones((1,) * dims, device=DEVICE), torch.ones((1,) + (2,) * (dims - 1), device=DEVICE)
    getattr(torch.ops.aten, name)(grad, x, torch.full_like(grad, -1, dtype=torch.int64))
    with pytest.raises(torch.AcceleratorError, match=rf"{name}.*at least 0"):
        torch.openreg.synchronize()
    torch.openreg.reset_device()
