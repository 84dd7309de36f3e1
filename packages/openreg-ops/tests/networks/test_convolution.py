# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions of one to three dimensions, also transposed, give the CPU's results and gradients."""

import pytest
import torch
from parity import DEVICE, check
from torch.nn import functional

pytestmark = pytest.mark.no_fallback

FORWARD = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
TRANSPOSED = {1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d}
SIZES = {1: (9,), 2: (9, 8), 3: (5, 6, 7)}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}
OPTIONS = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"dilation": 2, "padding": 2},
    {"groups": 2},
    {"stride": 2, "padding": 1, "groups": 4},
]


def operands(dims, *, groups=1, transposed=False, bias=True, batch=2, dtype=torch.float32):
    x = torch.randn(batch, 4, *SIZES[dims], dtype=dtype)
    shape = (4, 8 // groups) if transposed else (8, 4 // groups)
    w = torch.randn(*shape, *[3] * dims, dtype=dtype)
    b = torch.randn(8, dtype=dtype) if bias else None
    return tuple(t.requires_grad_() if t is not None else None for t in (x, w, b))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolution(dims, options):
    check(FORWARD[dims], *operands(dims, groups=options.get("groups", 1)), tolerance=TOLERANCE, **options)


@pytest.mark.parametrize("options", [*OPTIONS, {"stride": 2, "output_padding": 1}], ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed(dims, options):
    x, w, b = operands(dims, groups=options.get("groups", 1), transposed=True)
    check(TRANSPOSED[dims], x, w, b, tolerance=TOLERANCE, **options)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_without_bias(dims):
    x, w, _ = operands(dims, bias=False)
    check(FORWARD[dims], x, w, tolerance=TOLERANCE)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_without_batch(dims):
    x, w, b = operands(dims)
    check(FORWARD[dims], x.detach()[0].requires_grad_(), w, b, tolerance=TOLERANCE)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_padding_by_name(padding):
    check(functional.conv2d, *operands(2), padding=padding, tolerance=TOLERANCE)


@pytest.mark.parametrize(("dims", "memory_format"), [(2, torch.channels_last), (3, torch.channels_last_3d)])
@pytest.mark.parametrize("which", ["input", "weight", "both"])
def test_channels_last(dims, memory_format, which):
    x, w, b = operands(dims)
    if which != "weight":
        x = x.detach().contiguous(memory_format=memory_format).requires_grad_()
    if which != "input":
        w = w.detach().contiguous(memory_format=memory_format).requires_grad_()
    check(FORWARD[dims], x, w, b, padding=1, tolerance=TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.complex64], ids=str)
def test_dtypes(dtype):
    rough = {"rtol": 0.05, "atol": 0.2} if dtype in (torch.bfloat16, torch.float16) else TOLERANCE
    check(functional.conv2d, *operands(2, dtype=dtype), tolerance=rough)


def test_strided_operands():
    x, w, b = operands(2)
    check(
        functional.conv2d, x.detach().mT.requires_grad_(), w.detach().flip(0)[::2].requires_grad_(), tolerance=TOLERANCE
    )
    check(functional.conv2d, x.detach()[:, :, ::2].requires_grad_(), w, b, tolerance=TOLERANCE)


def test_an_empty_batch():
    check(functional.conv2d, *operands(2, batch=0))


def test_second_derivatives():
    inputs = [t.to(DEVICE).detach().requires_grad_() for t in operands(2, dtype=torch.float64, batch=1)]
    small = [inputs[0][:, :, :4, :4].detach().requires_grad_(), *inputs[1:]]
    with torch.openreg.fallback_mode("allow"):
        assert torch.autograd.gradgradcheck(lambda x, w, b: functional.conv2d(x, w, b), small, nondet_tol=1e-9)


def test_only_the_gradients_asked_for():
    for which in range(3):
        values = [t.detach() for t in operands(2)]
        values[which].requires_grad_()
        check(functional.conv2d, *values, tolerance=TOLERANCE)


def test_modules():
    for module in (torch.nn.Conv2d(4, 6, 3, padding_mode="circular", padding=1), torch.nn.ConvTranspose2d(4, 6, 3)):
        x = torch.randn(2, 4, 6, 6)
        expected = module(x)
        torch.testing.assert_close(module.to(DEVICE)(x.to(DEVICE)).cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (lambda x, w: functional.conv2d(x.double(), w), "same dtype"),
        (lambda x, w: functional.conv2d(x, w, torch.zeros(8, dtype=torch.float64, device=DEVICE)), "same"),
        (lambda x, w: functional.conv2d(x, w.cpu()), "same device|device"),
        (lambda x, w: functional.conv2d(x, w.to("openreg:1")), "openreg:1"),
        (lambda x, w: functional.conv2d(x[:, :3], w), "channels"),
        (lambda x, w: functional.conv2d(x[:, :, :2], w), "Kernel size"),
        (lambda x, w: functional.conv2d(x, w, groups=3), "group"),
    ],
)
def test_mistakes_are_found_on_the_calling_line(operation, text):
    x, w, _ = (t.detach().to(DEVICE) for t in operands(2))
    with pytest.raises(RuntimeError, match=text):
        operation(x, w)
    torch.openreg.synchronize()
