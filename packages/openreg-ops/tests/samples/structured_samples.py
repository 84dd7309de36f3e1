# SPDX-License-Identifier: BSD-3-Clause
"""Arguments for every structured operator, by the name of its functional form."""

import functools

import torch
from network_samples import network_samples


def number(*shape):
    return torch.randn(shape)


def positive(*shape):
    return torch.rand(shape) + 0.5


def unit(*shape):
    return torch.rand(shape) * 0.9 + 0.05


def integer(*shape, low=1, high=20):
    return torch.randint(low, high, shape)


def spread(*shape):
    """No two elements are equal, so that the place of an extremum is unique."""
    count = torch.Size(shape).numel()
    return torch.randperm(count).float().view(shape) / count


def matrix(n=4):
    """Well conditioned."""
    return number(n, n) + n * torch.eye(n)


def symmetric(n=4):
    a = number(n, n)
    return a @ a.mT + n * torch.eye(n)


EVERYWHERE = [
    "abs",
    "angle",
    "asinh",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "frac",
    "i0",
    "logical_not",
    "mish",
    "nan_to_num",
    "neg",
    "round",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "tan",
    "tanh",
    "trunc",
    "gelu",
    "elu",
    "hardshrink",
    "hardsigmoid",
    "leaky_relu",
    "softplus",
    "softshrink",
    "isneginf",
    "isposinf",
    "special_airy_ai",
    "special_bessel_j0",
    "special_bessel_j1",
    "special_erfcx",
    "special_i0e",
    "special_i1",
    "special_i1e",
    "special_log_ndtr",
    "special_modified_bessel_i0",
    "special_modified_bessel_i1",
    "special_spherical_bessel_j0",
]
ABOVE_ZERO = [
    "digamma",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "reciprocal",
    "rsqrt",
    "sqrt",
    "special_bessel_y0",
    "special_bessel_y1",
    "special_entr",
    "special_modified_bessel_k0",
    "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0",
    "special_scaled_modified_bessel_k1",
]
UNIT_INTERVAL = ["acos", "asin", "atanh", "erfinv", "special_ndtri"]
PAIRS = [
    "add.Tensor",
    "atan2",
    "clamp_max.Tensor",
    "clamp_min.Tensor",
    "copysign.Tensor",
    "div.Tensor",
    "eq.Tensor",
    "fmax",
    "fmin",
    "fmod.Tensor",
    "ge.Tensor",
    "gt.Tensor",
    "heaviside",
    "hypot",
    "le.Tensor",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "lt.Tensor",
    "maximum",
    "minimum",
    "mul.Tensor",
    "ne.Tensor",
    "nextafter",
    "remainder.Tensor",
    "sub.Tensor",
    "isin.Tensor_Tensor",
]
POSITIVE_PAIRS = ["igamma", "igammac", "pow.Tensor_Tensor", "special_xlog1py", "special_zeta", "xlogy.Tensor"]
POLYNOMIALS = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]
INTEGER_PAIRS = [
    "bitwise_and.Tensor",
    "bitwise_or.Tensor",
    "bitwise_xor.Tensor",
    "bitwise_left_shift.Tensor",
    "bitwise_right_shift.Tensor",
    "gcd",
    "lcm",
]
COMPARISONS = ["eq.Scalar", "ge.Scalar", "gt.Scalar", "le.Scalar", "lt.Scalar", "ne.Scalar"]


def elementwise():
    table = {name: [(number(3, 4),)] for name in EVERYWHERE}
    table |= {name: [(positive(3, 4),)] for name in ABOVE_ZERO}
    table |= {name: [(unit(3, 4),)] for name in UNIT_INTERVAL}
    table |= {name: [(number(3, 4), number(3, 4)), (number(3, 4), number(4))] for name in PAIRS}
    table |= {name: [(positive(3, 4), positive(4))] for name in POSITIVE_PAIRS}
    table |= {f"special_{name}": [(unit(3, 4), integer(3, 4, high=5).float())] for name in POLYNOMIALS}
    table |= {name: [(integer(3, 4), integer(4, high=6))] for name in INTEGER_PAIRS}
    table |= {name: [(number(3, 4).round(), 1.0)] for name in COMPARISONS}
    x, y, z = number(3, 4), number(3, 4), positive(3, 4)
    return table | {
        "acosh": [(positive(3, 4) + 1,)],
        "addcdiv": [(x, y, z)],
        "addcmul": [(x, y, z)],
        "bitwise_not": [(integer(3, 4),), (x > 0,)],
        "clamp": [(x, -0.5, 0.5), (x, None, 0.5)],
        "clamp.Tensor": [(x, -z, z)],
        "clamp_max": [(x, 0.5)],
        "clamp_min": [(x, 0.5)],
        "div.Tensor_mode": [(x, y)],
        "glu": [(x,)],
        "isin.Tensor_Scalar": [(integer(5), 2)],
        "lerp.Scalar": [(x, y, 0.3)],
        "lerp.Tensor": [(x, y, z)],
        "polygamma": [(2, z)],
        "pow.Scalar": [(2.0, x)],
        "pow.Tensor_Scalar": [(z, 1.5)],
        "round.decimals": [(x,)],
        "threshold": [(x, 0.1, 5.0)],
        "where.self": [(x > 0, x, y)],
    }


def activation_gradients():
    grad, x, unit_x = number(3, 4), number(3, 4), unit(3, 4)
    return {
        "elu_backward": [(grad, 1.0, 1.0, 1.0, False, x)],
        "gelu_backward": [(grad, x)],
        "hardshrink_backward": [(grad, x, 0.5)],
        "hardsigmoid_backward": [(grad, x)],
        "leaky_relu_backward": [(grad, x, 0.1, False)],
        "logit_backward": [(grad, unit_x, 0.01)],
        "sigmoid_backward": [(grad, unit_x)],
        "silu_backward": [(grad, x)],
        "softplus_backward": [(grad, x, 1, 20)],
        "softshrink_backward": [(grad, x, 0.5)],
        "tanh_backward": [(grad, unit_x)],
        "threshold_backward": [(grad, x, 0.1)],
    }


def reductions():
    x, s = number(3, 4, 5), spread(3, 4, 5)
    return {
        "all": [(x > -2,)],
        "all.dim": [(x > -2, 1)],
        "all.dims": [(x > -2, [0, 1])],
        "amax": [(x, [1]), (x,)],
        "amin": [(x, [1]), (x,)],
        "aminmax": [(x,)],
        "any": [(x > 2,)],
        "any.dim": [(x > 2, 1)],
        "any.dims": [(x > 2, [0, 1])],
        "argmax": [(s, 1), (s,)],
        "argmin": [(s, 1), (s,)],
        "cumprod": [(x, 1)],
        "cumsum": [(x, 1)],
        "hash_tensor": [(x,), (x, [1])],
        "max.dim": [(s, 1)],
        "mean.dim": [(x, [0, 2]), (x, None)],
        "min.dim": [(s, 1)],
        "norm.ScalarOpt_dim": [(x, 2, [1])],
        "norm.ScalarOpt_dim_dtype": [(x, 2, [1], False)],
        "prod.dim_int": [(x, 1)],
        "renorm": [(x, 2, 0, 1.0)],
        "sort.stable": [(s,)],
        "sum.dim_IntList": [(x, [0, 2]), (x, None)],
        "topk": [(s, 2)],
        "linalg_vector_norm": [(x,), (x, 3, [1])],
    }


def indexing():
    x, index, source = number(4, 5), torch.tensor([2, 0, 3]), number(3, 5)
    places = torch.stack([torch.randperm(4) for _ in range(5)], dim=1)
    return {
        "cat": [([x, number(2, 5)],), ([x, x], 1)],
        "gather": [(x, 0, places)],
        "index.Tensor": [(x, [index]), (x, [None, torch.tensor([[0, 1], [4, 4]])])],
        "index_add": [(x, 0, index, source)],
        "index_copy": [(x, 0, index, source)],
        "index_reduce": [(x, 0, index, source, "amax")],
        "scatter.reduce": [(x, 0, places, number(4, 5))],
        "scatter.src": [(x, 0, places, number(4, 5))],
        "scatter.value": [(x, 0, places, 2.0)],
        "scatter.value_reduce": [(x, 0, places, 2.0)],
        "scatter_add": [(x, 0, places, number(4, 5))],
        "scatter_reduce.two": [(x, 0, places, number(4, 5), "amin")],
        "tril": [(x,), (x, 1)],
        "triu": [(x,), (x, -1)],
        "_convert_indices_from_coo_to_csr": [(torch.tensor([0, 0, 1, 3]), 4)],
        "_convert_indices_from_csr_to_coo": [(torch.tensor([0, 2, 3, 3, 4]), torch.tensor([0, 1, 2, 0]))],
    }


def linear_algebra():
    a, b, m, s = number(3, 4), number(4, 5), matrix(), symmetric()
    lu, pivots = torch.linalg.lu_factor(m)
    ldl, ldl_pivots, _ = torch.linalg.ldl_factor_ex(s)
    # torch 2.13 does not have it.
    polar = {"linalg_polar": [(a.t(),)]} if hasattr(torch.ops.aten, "linalg_polar") else {}
    return {
        **polar,
        "_addmm_activation": [(number(3, 5), a, b)],
        "addmm": [(number(3, 5), a, b), (number(3, 5), a, b.t().contiguous().t())],
        "addmv": [(number(3), a, number(4))],
        "baddbmm": [(number(2, 3, 5), number(2, 3, 4), number(2, 4, 5))],
        "bmm": [(number(2, 3, 4), number(2, 4, 5))],
        "mm": [(a, b), (b.t(), a.t())],
        "_linalg_det": [(m,)],
        "_linalg_eigh": [(s,)],
        "_linalg_slogdet": [(m,)],
        "_linalg_solve_ex": [(m, number(4, 2))],
        "_linalg_svd": [(number(4, 3),)],
        "linalg_cholesky_ex": [(s,)],
        "linalg_cross": [(number(4, 3), number(4, 3))],
        "linalg_inv_ex": [(m,)],
        "linalg_ldl_factor_ex": [(s,)],
        "linalg_ldl_solve": [(ldl, ldl_pivots, number(4, 2))],
        "linalg_lu": [(m,)],
        "linalg_lu_factor_ex": [(m,)],
        "linalg_lu_solve": [(lu, pivots, number(4, 2))],
        "linalg_qr": [(number(4, 3),)],
        "lu_unpack": [(lu, pivots)],
        "triangular_solve": [(number(4, 2), m)],
    }


def losses():
    x, target = number(4, 5), torch.tensor([1, 0, 4, 2])
    log_probabilities = torch.log_softmax(x, 1)
    total = torch.tensor(4.0)
    return {
        "_log_softmax": [(x, 1, False)],
        "_log_softmax_backward_data": [(number(4, 5), log_probabilities, 1, torch.float32)],
        "_softmax": [(x, 0, False)],
        "_softmax_backward_data": [(number(4, 5), torch.softmax(x, 1), 1, torch.float32)],
        "mse_loss": [(x, number(4, 5)), (x, number(4, 5), 0)],
        "nll_loss_backward": [(torch.tensor(1.0), log_probabilities, target, None, 1, -100, total)],
        "nll_loss_forward": [(log_probabilities, target, None, 1, -100), (log_probabilities, target, unit(5), 2, 4)],
        "smooth_l1_loss": [(x, number(4, 5))],
    }


def windows():
    x, volume = spread(2, 3, 8, 8), spread(2, 3, 6, 6, 6)
    samples, samples3 = unit(2, 3, 2), unit(2, 3, 3)
    _, places = torch.ops.aten.max_pool2d_with_indices(x, [2, 2])
    _, adaptive = torch.ops.aten.adaptive_max_pool2d(x, [4, 4])
    _, adaptive3 = torch.ops.aten.adaptive_max_pool3d(volume, [3, 3, 3])
    _, fractional = torch.ops.aten.fractional_max_pool2d(x, [2, 2], [4, 4], samples)
    pooled = number(2, 3, 4, 4)
    options = ([0, 0], False, True, None)
    return {
        "adaptive_max_pool2d": [(x, [4, 4])],
        "adaptive_max_pool2d_backward": [(pooled, x, adaptive)],
        "adaptive_max_pool3d": [(volume, [3, 3, 3])],
        "adaptive_max_pool3d_backward": [(number(2, 3, 3, 3, 3), volume, adaptive3)],
        "avg_pool2d": [(x, [2, 2]), (x, [3, 3], [2, 2], [1, 1], True)],
        "avg_pool2d_backward": [(pooled, x, [2, 2], [2, 2], *options)],
        "avg_pool3d": [(volume, [2, 2, 2])],
        "avg_pool3d_backward": [(number(2, 3, 3, 3, 3), volume, [2] * 3, [2] * 3, [0] * 3, False, True, None)],
        "fractional_max_pool2d": [(x, [2, 2], [4, 4], samples)],
        "fractional_max_pool2d_backward": [(pooled, x, [2, 2], [4, 4], fractional)],
        "fractional_max_pool3d": [(volume, [2, 2, 2], [3, 3, 3], samples3)],
        "max_pool2d_with_indices": [(x, [2, 2]), (x, [3, 3], [2, 2], [1, 1], [1, 1], True)],
        "max_pool2d_with_indices_backward": [(pooled, x, [2, 2], [2, 2], [0, 0], [1, 1], False, places)],
        "reflection_pad1d": [(number(2, 3, 5), [1, 2])],
        "reflection_pad1d_backward": [(number(2, 3, 8), number(2, 3, 5), [1, 2])],
        "reflection_pad3d": [(volume, [1] * 6)],
        "reflection_pad3d_backward": [(number(2, 3, 8, 8, 8), volume, [1] * 6)],
        "replication_pad1d": [(number(2, 3, 5), [1, 2])],
        "replication_pad1d_backward": [(number(2, 3, 8), number(2, 3, 5), [1, 2])],
        "replication_pad2d": [(x, [1, 2, 0, 1])],
        "replication_pad3d": [(volume, [1] * 6)],
    }


def resampling():
    line, image, volume = number(2, 3, 5), number(2, 3, 5, 5), number(2, 3, 4, 4, 4)
    up1, up2, up3 = number(2, 3, 10), number(2, 3, 10, 10), number(2, 3, 8, 8, 8)
    table = {}
    for name in ("upsample_nearest1d", "_upsample_nearest_exact1d"):
        table[name] = [(line, [10])]
        table[f"{name}_backward"] = [(up1, [10], [2, 3, 5])]
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        table[name] = [(image, [10, 10])]
        table[f"{name}_backward"] = [(up2, [10, 10], [2, 3, 5, 5])]
    for name in ("upsample_nearest3d", "_upsample_nearest_exact3d"):
        table[name] = [(volume, [8, 8, 8])]
        table[f"{name}_backward"] = [(up3, [8, 8, 8], [2, 3, 4, 4, 4])]
    for name in ("upsample_bicubic2d", "upsample_bilinear2d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa"):
        table[name] = [(image, [10, 10], False)]
        table[f"{name}_backward"] = [(up2, [10, 10], [2, 3, 5, 5], False)]
    table["_upsample_lanczos2d_aa"] = [(image, [10, 10], False)]
    table["_upsample_lanczos2d_aa_backward"] = [(up2, [10, 10], [2, 3, 5, 5], False)]
    table["upsample_linear1d"] = [(line, [10], True)]
    table["upsample_linear1d_backward"] = [(up1, [10], [2, 3, 5], True)]
    table["upsample_trilinear3d"] = [(volume, [8, 8, 8], True)]
    table["upsample_trilinear3d_backward"] = [(up3, [8, 8, 8], [2, 3, 4, 4, 4], True)]
    return table


# What an operator needs beside its positional arguments.
OPTIONS = {
    "div.Tensor_mode": {"rounding_mode": "floor"},
    "norm.ScalarOpt_dim_dtype": {"dtype": torch.float64},
    "round.decimals": {"decimals": 1},
    "scatter.reduce": {"reduce": "add"},
    "scatter.value_reduce": {"reduce": "multiply"},
    "sort.stable": {"stable": True},
}


@functools.cache
def make_samples():
    """Returns positional arguments on the CPU, which tests must not change."""
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(7)
        families = (elementwise, activation_gradients, reductions, indexing, linear_algebra, losses, windows)
        table = resampling() | network_samples()
        for family in families:
            table |= family()
        return table
