# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that a kernel would find too late raise PyTorch's error from the call itself."""

import pytest
import torch
from parity import DEVICE, check, check_failure
from torch.nn import functional

pytestmark = pytest.mark.no_fallback

INT, DOUBLE = torch.int32, torch.float64


def ones(*shape, **options):
    return torch.ones(shape, **options)


def empty(*shape, **options):
    return torch.empty(shape, **options)


MISTAKES = {
    "angle": lambda: torch.angle(ones(2), out=empty(2, dtype=INT)),
    "conj_physical": lambda: torch.conj_physical(ones(2), out=empty(2, dtype=DOUBLE)),
    "nan_to_num": lambda: torch.nan_to_num(ones(2), out=empty(2, dtype=DOUBLE)),
    "mean": lambda: torch.mean(ones(2), 0, out=empty(dtype=INT)),
    "cumsum": lambda: torch.cumsum(ones(2, dtype=INT), 0, dtype=torch.bool),
    "cumprod": lambda: ones(2, dtype=torch.bool).cumprod_(0),
    "gelu": lambda: functional.gelu(ones(2), approximate="other"),
    "gelu_backward": lambda: torch.ops.aten.gelu_backward(ones(2), ones(2), approximate="other"),
    "addr": lambda: ones().addr_(ones(2), ones(2)),
    "addr into a vector": lambda: torch.addr(ones(2, 2), vector := ones(2), ones(2), out=vector),
    "logit": lambda: torch.logit(ones(2), out=empty(2, dtype=INT)),
    "linspace": lambda: torch.linspace(0, ones(2), 3, out=empty(3)),
    "logspace": lambda: torch.logspace(ones(2), 1, 3, out=empty(3)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_operands_that_do_not_fit(name):
    def call(there):
        with there.device:
            MISTAKES[name]()

    check_failure(call, torch.empty(()))


DTYPES = {
    "solve_triangular": lambda: torch.linalg.solve_triangular(
        ones(2, 2), ones(2, 2), upper=True, out=empty(2, 2, dtype=DOUBLE)
    ),
    "ormqr": lambda: torch.ormqr(ones(2, 2), ones(2), ones(2, 2), out=empty(2, 2, dtype=DOUBLE)),
}


@pytest.mark.parametrize("name", DTYPES)
def test_an_output_of_another_dtype(name):
    with torch.device(DEVICE), pytest.raises(RuntimeError, match="dtype"):
        DTYPES[name]()
    torch.openreg.synchronize()


OUTS = {
    "abs": lambda out: torch.abs(ones(2, 2, dtype=torch.complex64), out=out),
    "addr": lambda out: torch.addr(ones(2, 2), ones(2), ones(2), out=out),
    "bernoulli": lambda out: torch.bernoulli(ones(2, 2), out=out),
    "cholesky_inverse": lambda out: torch.cholesky_inverse(ones(2, 2), out=out),
    "fft": lambda out: torch.fft.hfft(ones(2, 2, dtype=torch.float16), out=out.half()),
    "mode": lambda out: torch.mode(ones(2, 2), 0, out=(out, out.long())),
}


@pytest.mark.parametrize("name", OUTS)
def test_an_output_on_the_cpu(name):
    out = torch.empty(2, 2)
    with torch.device(DEVICE), pytest.raises(RuntimeError, match=r"device"):
        OUTS[name](out)
    torch.openreg.synchronize()


def test_outputs_of_another_dtype_where_pytorch_casts():
    x = torch.randn(3, 4)
    for device in ("cpu", DEVICE):
        out = torch.fft.fft(x.to(device), out=torch.empty(3, 4, dtype=torch.complex128, device=device))
        assert out.dtype == torch.complex128
        torch.testing.assert_close(out.cpu(), torch.fft.fft(x).to(torch.complex128))


def test_an_integer_scaled_by_dropout_is_a_floating_point_number():
    check(torch.ops.aten.native_dropout_backward, torch.tensor([1, 2, 3]), torch.tensor([True, False, True]), 2.5)


def test_distances_of_nothing_have_gradients():
    check(torch.cdist, torch.randn(3, 5, requires_grad=True), torch.randn(0, 4, 5), p=2.0)
    check(torch.cdist, torch.randn(2, 3, 5, requires_grad=True), torch.randn(2, 0, 5), p=1.0)


def test_complex_linear_has_conjugate_gradients():
    operands = [torch.randn(*shape, dtype=torch.complex64).requires_grad_() for shape in ((4, 3), (2, 3), (2,))]
    check(lambda x, w, b: functional.linear(x, w, b).abs(), *operands)


def test_parameters_of_a_group_norm_may_have_strides():
    weight = torch.randn(6, 2)[:, 0].requires_grad_()
    check(functional.group_norm, torch.randn(2, 6, 3, requires_grad=True), 2, weight, torch.randn(12)[::2])
