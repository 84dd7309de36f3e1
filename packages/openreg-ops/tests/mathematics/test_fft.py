# SPDX-License-Identifier: BSD-3-Clause
"""torch.fft, torch.stft and torch.istft give the CPU's results for all dtypes and strides."""

import pytest
import torch
from parity import DEVICE, check, is_busy
from torch.torch_version import TorchVersion

pytestmark = pytest.mark.no_fallback

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
ONE_DIMENSION = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"]
# The dtypes of 16 bits that a GPU transforms.
REDUCED = [torch.float16, *([torch.bfloat16] if torch.__version__ >= TorchVersion("2.15") else [])]
TAKE_REAL = {"rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn"}


def operand(name, *shape, dtype=torch.float32):
    torch.manual_seed(3)
    return torch.randn(shape, dtype=dtype if name in TAKE_REAL else dtype.to_complex())


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ONE_DIMENSION)
def test_one_dimension(name, norm):
    transform = getattr(torch.fft, name)
    for dim, n in ((-1, None), (0, 7), (1, 4)):
        x = operand(name, 5, 6, 4).requires_grad_()
        check(lambda t, dim=dim, n=n: transform(t, n=n, dim=dim, norm=norm), x, tolerance=CLOSE)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_dimensions(name):
    transform = getattr(torch.fft, name)
    for dim in ((-2, -1), (1, 0), (2, 0)):
        x = operand(name, 5, 6, 4).requires_grad_()
        check(lambda t, dim=dim: transform(t, dim=dim), x, tolerance=CLOSE)
    check(lambda t: transform(t, s=(4, 8), dim=(0, 2)), operand(name, 5, 6, 4), tolerance=CLOSE)


@pytest.mark.parametrize("name", ONE_DIMENSION)
def test_strided_and_conjugated_operands(name):
    transform = getattr(torch.fft, name)
    x = operand(name, 6, 8, dtype=torch.float64)
    for layout in (x.t(), x[::2, 1:], x.conj(), x.conj().t()):
        check(transform, layout)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "fftn", "irfftn"])
def test_out(name):
    transform = getattr(torch.fft, name)
    x = operand(name, 4, 6)
    expected = transform(x)
    for out in (torch.empty(0, dtype=expected.dtype, device=DEVICE), torch.zeros_like(expected, device=DEVICE)):
        assert transform(x.to(DEVICE), out=out) is out
        torch.testing.assert_close(out.cpu(), expected, **CLOSE)


def test_short_time_transform_and_back():
    signal = torch.randn(2, 400, requires_grad=True)
    window = torch.hann_window(64)

    def there_and_back(x, w):
        spectrum = torch.stft(x, 64, 16, window=w, return_complex=True)
        return spectrum, torch.istft(spectrum * 1, 64, 16, window=w, length=400)

    with torch.openreg.fallback_mode("allow"):
        check(there_and_back, signal, window, tolerance=CLOSE, strides=False)


@pytest.mark.filterwarnings("ignore:B?Complex(Half|32) support is experimental")
@pytest.mark.parametrize("dtype", REDUCED, ids=str)
@pytest.mark.parametrize("name", ONE_DIMENSION + SEVERAL)
def test_reduced_precision_is_computed_in_float(name, dtype):
    transform = getattr(torch.fft, name)
    x = operand(name, 4, 8).real.to(dtype)
    ours = transform(x.to(DEVICE))
    expected = transform(x.float())
    assert ours.dtype == (dtype.to_complex() if expected.is_complex() else dtype)
    rounding = 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(ours.to(expected.dtype).cpu(), expected, rtol=rounding, atol=10 * rounding)


@pytest.mark.filterwarnings("ignore:B?Complex(Half|32) support is experimental")
@pytest.mark.parametrize("dtype", REDUCED, ids=str)
def test_reduced_precision_has_gradients_and_out(dtype):
    x = torch.randn(8).to(dtype).to(DEVICE).requires_grad_()
    torch.fft.rfft(x).to(torch.complex64).abs().sum().backward()
    reference = x.detach().cpu().float().requires_grad_()
    torch.fft.rfft(reference).abs().sum().backward()
    rounding = 10 * torch.finfo(dtype).eps
    torch.testing.assert_close(x.grad.float().cpu(), reference.grad, rtol=rounding, atol=rounding)
    out = torch.empty(0, dtype=dtype.to_complex(), device=DEVICE)
    assert torch.fft.fft(x.detach(), out=out) is out
    assert out.shape == (8,)


@pytest.mark.filterwarnings("ignore:B?Complex(Half|32) support is experimental")
@pytest.mark.parametrize("dtype", REDUCED, ids=str)
def test_a_short_time_transform_in_reduced_precision(dtype):
    signal, window = torch.randn(400).to(dtype), torch.hann_window(64).to(dtype)
    ours = torch.stft(signal.to(DEVICE), 64, 16, window=window.to(DEVICE), return_complex=True)
    expected = torch.stft(signal.float(), 64, 16, window=window.float(), return_complex=True)
    assert ours.dtype == dtype.to_complex()
    rounding = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(ours.to(expected.dtype).cpu(), expected, rtol=rounding, atol=16 * rounding)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_complex_half_is_computed_in_complex_float():
    z = torch.randn(6, dtype=torch.complex64)
    ours = torch.fft.ifft(z.to(torch.complex32).to(DEVICE))
    assert ours.dtype == torch.complex32
    torch.testing.assert_close(ours.to(torch.complex64).cpu(), torch.fft.ifft(z), rtol=1e-2, atol=1e-2)


def test_dtypes_that_no_kernel_takes_are_refused():
    x = torch.ones(4, device=DEVICE)
    if torch.bfloat16 not in REDUCED:
        with pytest.raises(RuntimeError, match="BFloat16"):
            torch.fft.fft(x.bfloat16())
    with pytest.raises(RuntimeError, match="complex"):
        torch.ops.aten._fft_c2c(x, [0], 0, True)
    # A TypeError since torch 2.14.
    for operand in ((x + 0j).cpu(), x + 0j):
        with pytest.raises((RuntimeError, TypeError), match="floating-point") as raised:
            torch.ops.aten._fft_r2c(operand, [0], 0, True)
        assert (raised.type is TypeError) == (torch.__version__ >= TorchVersion("2.14"))


def test_a_launch_returns_before_its_kernel_ran(gate):
    x = torch.randn(16, device=DEVICE)
    gate.close()
    y = torch.fft.fft(x)
    assert is_busy()
    gate.open()
    torch.testing.assert_close(y.cpu(), torch.fft.fft(x.cpu()), **CLOSE)
