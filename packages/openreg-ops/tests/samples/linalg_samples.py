# SPDX-License-Identifier: BSD-3-Clause
"""Arguments for Fourier transforms and linear algebra with an out= overload, by name of the functional overload."""

import torch


def fft_samples():
    torch.manual_seed(13)
    x, z = torch.randn(4, 6), torch.randn(4, 6, dtype=torch.complex64)
    complex_to_complex = ("fft", "fft2", "fftn", "ifft", "ifft2", "ifftn")
    complex_to_real = ("hfft", "hfft2", "hfftn", "irfft", "irfft2", "irfftn")
    real_to_complex = ("ihfft", "ihfft2", "ihfftn", "rfft", "rfft2", "rfftn")
    return {
        "_fft_c2c": [(z, [0, 1], 0, True), (z.conj(), [0], 1, False)],
        "_fft_c2r": [(z, [1], 0, 10), (z, [1, 0], 2, 7)],
        "_fft_r2c": [(x, [1], 0, True), (x, [0], 0, False)],
        **{f"fft_{name}": [(z,)] for name in (*complex_to_complex, *complex_to_real)},
        **{f"fft_{name}": [(x,)] for name in real_to_complex},
    }


def linalg_samples():
    torch.manual_seed(13)
    a, b = torch.randn(2, 4, 3), torch.randn(2, 4, 2)
    positive = a.mT @ a + 2 * torch.eye(3)
    reflectors, tau = torch.geqrf(a)
    # Gone since PyTorch 2.14.
    gone = {"cholesky": [(positive,), (positive[0], True)]} if hasattr(torch.ops.aten, "cholesky") else {}
    return {
        **gone,
        "addbmm": [(torch.randn(3, 2), a.mT, b), (torch.randn(2), a.mT, b)],
        "cholesky_inverse": [(torch.linalg.cholesky(positive),), (torch.linalg.cholesky(positive[0]).mT, True)],
        "geqrf": [(a,), (b.mT,)],
        "linalg_eig": [(torch.randn(3, 3),), (torch.randn(2, 3, 3, dtype=torch.complex64),)],
        "linalg_householder_product": [(reflectors, tau)],
        "linalg_solve_triangular": [(positive, torch.randn(3, 2)), (positive[0], torch.randn(2, 3, 1))],
        "ormqr": [(reflectors, tau, b), (reflectors[0], tau[0], b[0].mT.contiguous(), False, True)],
    }


LINALG_OPTIONS = {"linalg_solve_triangular": {"upper": True}}
