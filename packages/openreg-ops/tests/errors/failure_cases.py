# SPDX-License-Identifier: BSD-3-Clause
"""Calls that fail because of their data, as expressions with a device.

Those of AT_THE_CALL raise from the call, as on the CPU, and the device stays usable. Those of LATER cause an
asynchronous error, as on a GPU; the page docs/async_errors.md shows that table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional

NAN = float("nan")

AT_THE_CALL = (
    # What LAPACK reports
    "linalg.cond(nan)",
    "linalg.eigh(nan)",
    "linalg.eigvalsh(nan)",
    "linalg.matrix_norm(nan, 'nuc')",
    "linalg.matrix_rank(nan)",
    "linalg.pinv(nan)",
    "linalg.pinv(nan, hermitian=True)",
    "linalg.svd(nan)",
    "linalg.svdvals(nan)",
    "linalg.eig(nan)",
    "linalg.cholesky(zeros(2, 2))",
    "linalg.cholesky_ex(zeros(2, 2), check_errors=True)",
    "linalg.inv(zeros(2, 2))",
    "linalg.inv_ex(zeros(2, 2), check_errors=True)",
    "linalg.ldl_factor_ex(zeros(2, 2), check_errors=True)",
    "linalg.lstsq(nan, ones(3, 1))",
    "linalg.lstsq(nan, ones(3, 1), driver='gelsd')",
    "linalg.lu_factor_ex(zeros(2, 2), check_errors=True)",
    "linalg.solve(zeros(2, 2), ones(2))",
    "linalg.solve_ex(zeros(2, 2), ones(2), check_errors=True)",
    # torch 2.13 does not have these two.
    *(("linalg.polar(nan)", "linalg.matrix_sqrth(nan)") if hasattr(torch.linalg, "polar") else ()),
    # Integers divided by zero
    "tensor([1, 2]) // tensor([1, 0])",
    "tensor([1, 2]) // 0",
    "tensor([1, 2]) % tensor([1, 0])",
    "tensor([1, 2]) % 0",
    "tensor([1, 2]).fmod(tensor([1, 0]))",
    "tensor([1, 2]).floor_divide_(tensor([1, 0]))",
    "torch.div(tensor([1, 2]), tensor([1, 0]), rounding_mode='trunc', out=tensor([0, 0]))",
    "5 // tensor([1, 0])",
    # Numbers that the dtype cannot hold
    "bytes.add(bytes, alpha=300)",
    "bytes.addcmul(bytes, bytes, value=300)",
    "bytes.clamp(300, 400)",
    "bytes.fill_(300)",
    "bytes.masked_fill(bytes > 0, 300)",
    "bytes.masked_fill(bytes > 0, tensor(1j))",
    "bytes.masked_fill(bytes > 0, torch.tensor(1j))",
    "bytes.index_put((tensor([0]),), torch.tensor(1j))",
    "bytes.index_fill(0, tensor([0]), torch.tensor(1j))",
    "bytes.scatter(0, tensor([0]), 300)",
    "bytes ** 300",
    "functional.threshold(bytes, 1, 300)",
    "torch.addmm(tensor([[1]]), ones(1, 0).long(), ones(0, 1).long(), beta=0.2)",
    # Distributions, histograms, classes
    "ones(2).bernoulli_(2.0)",
    "functional.dropout(tensor([True, False]), 0.5)",
    "functional.dropout(tensor([1, 2]).to(torch.uint16), 0.5)",
    "ones(2).bernoulli_(torch.tensor(2.0))",
    "torch.histc(tensor([NAN, 1.0]))",
    "torch.histc(tensor([float('inf'), 1.0]))",
    "torch.histogram(tensor([NAN, 1.0]), 4)",
    "torch.histogramdd(tensor([[NAN, 1.0]]), [4, 4])",
    "functional.one_hot(tensor([-1]))",
    "functional.one_hot(tensor([-1]), 5)",
    "functional.one_hot(tensor([7]), 5)",
    "functional.one_hot(tensor([]).long())",
    # Masks, segments, sorters, nothing at all
    "ones(3).__setitem__(tensor([True, False, True]), ones(3))",
    "ones(3).__setitem__(bytes, 0)",
    "torch.segment_reduce(ones(3), 'sum', lengths=tensor([1, 5]))",
    "torch.segment_reduce(ones(3), 'sum', lengths=tensor([-1, 4]))",
    "torch.searchsorted(ones(3), ones(1), sorter=tensor([0, 1, 9]))",
    "functional.ctc_loss(ones(0, 1, 3), tensor([[]]).long(), [0], [0])",
    "functional.ctc_loss(ones(5, 0, 3), tensor([]).long(), [], [])",
    "tensor([]).item()",
)

# What fails on no device.
NEVER = (
    "linalg.lstsq(ones(3, 0), ones(3, 2))",
    "linalg.lstsq(ones(3, 0), ones(3, 2), driver='gels')",
    "linalg.lstsq(ones(3, 0), ones(3, 2), driver='gelsd')",
    "linalg.lstsq(ones(2, 3, 0), ones(2, 3, 2), driver='gelss')",
    "linalg.lstsq(ones(0, 3), ones(0, 2))",
    "linalg.inv_ex(zeros(2, 2)).info",
    "linalg.cholesky_ex(zeros(2, 2)).info",
    "tensor([4, 2]) // tensor([1, 2])",
    "bytes.clamp(0, 255)",
    "torch.histc(tensor([NAN, 1.0]), 4, 0, 2)",
    "functional.one_hot(tensor([2, 0]), 4)",
    "functional.one_hot(tensor([]).long(), 4)",
    "functional.one_hot(tensor(2))",
    "torch.segment_reduce(ones(3), 'sum', lengths=tensor([1, 2]))",
)


@dataclass(frozen=True)
class Late:
    """A call, and how CUDA's kernels treat the same mistake (source: PyTorch's documentation and kernels)."""

    call: str
    on_cuda: str


ASSERTED = "a device-side assertion: the context is lost"
UNCHECKED = "no check: undefined results, or an access beyond the memory"
LATER = (
    Late("ones(3)[tensor([9])]", ASSERTED),
    Late("ones(3).__setitem__(tensor([9]), ones(1))", ASSERTED),
    Late("ones(3).gather(0, tensor([9]))", ASSERTED),
    Late("ones(3).scatter(0, tensor([9]), ones(1))", ASSERTED),
    Late("ones(3).scatter_add(0, tensor([9]), ones(1))", ASSERTED),
    Late("ones(3).index_add(0, tensor([9]), ones(1))", ASSERTED),
    Late("ones(3).index_copy(0, tensor([9]), ones(1))", ASSERTED),
    Late("ones(3).index_fill(0, tensor([9]), 0)", ASSERTED),
    Late("ones(3).index_select(0, tensor([9]))", ASSERTED),
    Late("ones(3).put_(tensor([9]), ones(1))", ASSERTED),
    Late("ones(3).take(tensor([9]))", ASSERTED),
    Late("ones(3).masked_scatter(ones(3) > 0, ones(1))", ASSERTED),
    Late("functional.embedding(tensor([5]), ones(2, 3))", ASSERTED),
    Late("functional.embedding_bag(tensor([5]), ones(2, 3), tensor([0]))", ASSERTED),
    Late("functional.embedding_bag(tensor([0]), ones(2, 3), tensor([1]))", UNCHECKED),
    Late("functional.embedding_bag(tensor([0]), ones(2, 3), tensor([0, 9]))", UNCHECKED),
    Late("functional.cross_entropy(ones(1, 3), tensor([5]))", ASSERTED),
    Late("functional.multi_margin_loss(ones(1, 3), tensor([5]))", ASSERTED),
    Late("functional.binary_cross_entropy(tensor([2.0]), ones(1))", ASSERTED),
    Late("functional.max_unpool2d(ones(1, 1, 1, 2), tensor([[[[0, 99]]]]), 2)", ASSERTED),
    Late("torch.bernoulli(tensor([2.0]))", ASSERTED),
    Late("torch.poisson(tensor([-1.0]))", ASSERTED),
    Late("torch.multinomial(tensor([-1.0, 2.0]), 1)", ASSERTED),
    Late("torch.quantile(ones(3), tensor([2.0]))", ASSERTED),
    Late("torch._assert_async(zeros(1))", ASSERTED),
    Late("linalg.lu_solve(torch.eye(3, device=device), tensor([9, 9, 9]).int(), ones(3, 1))", UNCHECKED),
    Late("linalg.ldl_solve(torch.eye(3, device=device), tensor([9, 9, 9]).int(), ones(3, 1))", UNCHECKED),
    Late("torch.lu_unpack(torch.eye(3, device=device), tensor([9, 9, 9]).int())", UNCHECKED),
)


def evaluate(call: str, device: str) -> Any:
    """The value of the expression, whose tensors are made on the device."""
    names = {
        "torch": torch,
        "linalg": torch.linalg,
        "functional": functional,
        "NAN": NAN,
        "device": device,
        "nan": torch.full((3, 3), NAN, device=device),
        "bytes": torch.tensor([1, 0, 1], dtype=torch.uint8, device=device),
        **{name: partial(getattr(torch, name), device=device) for name in ("ones", "tensor", "zeros")},
    }
    return eval(call, names)
