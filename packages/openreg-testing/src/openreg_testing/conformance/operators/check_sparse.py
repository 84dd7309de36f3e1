# SPDX-License-Identifier: BSD-3-Clause
"""Checks sparse tensors, in the layouts that the table lists: results, gradients and errors are those of the CPU."""

from __future__ import annotations

import itertools
import unittest
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from .check_errors import compare_errors
from .check_results import check_sample
from .entries import DTYPES, differentiable, name_of, samples_of
from .report import EntryReport

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
SAMPLES = 60
LARGEST = 100_000  # maximal number of elements; larger samples take the CPU seconds, and other checks run them
OF_OTHER_DTYPES = 4  # samples in each dtype that only this check runs
BLOCKS = (2, 2)


def check_sparse(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares the table's sparse samples in each layout, or its dense ones converted to the layout.

    In the first dtype of the entry (OpInfo), also compares dtypes that the CPU supports and that no other check runs.
    """
    others = [each for each in sorted(op.dtypes, key=str) if each not in DTYPES] if report.is_first_dtype else []
    for layout in LAYOUTS:
        if not op.supports_sparse_layout(layout):
            continue
        name = f"sparse: {str(layout).removeprefix('torch.sparse_')}"
        gradient = differentiable(op, dtype)
        samples = [each for each in samples_in(op, layout, dtype, gradient) if each.input.numel() <= LARGEST]
        for sample in report.choose(samples, SAMPLES):
            check_sample(op, dtype, sample, gradient, report, name)
        for other in others:
            gradient = differentiable(op, other)
            for sample in itertools.islice(samples_in(op, layout, other, gradient), OF_OTHER_DTYPES):
                check_sample(op, other, sample, gradient, report, f"{name}, {name_of(other)}")
        if op.error_inputs_sparse_func is not None and report.is_first_dtype:
            compare_errors(op, op.error_inputs_sparse("cpu", layout), report, name)


def samples_in(op: Any, layout: torch.layout, dtype: torch.dtype, gradient: bool) -> Iterator[Any]:
    """Yields samples on the CPU; every call yields equal ones."""
    torch.manual_seed(2026)
    try:
        yield from op.sample_inputs_sparse(layout, "cpu", dtype, requires_grad=gradient)
    except (NotImplementedError, unittest.SkipTest):  # the table has no sparse samples, or none in this layout
        for sample in samples_of(op, dtype):
            yield from converted(sample, layout, gradient)


def converted(sample: Any, layout: torch.layout, gradient: bool) -> Iterator[Any]:
    """Yields the sample with its first operand in the layout, in each structure that its shape allows.

    Two thirds of the elements are zeros, which are not stored.
    """
    x = sample.input
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.dim() < (1 if layout == LAYOUTS[0] else 2):
        return
    kept = torch.arange(x.numel()).view(x.shape) % 3 == 0
    x = torch.where(kept, x.detach(), torch.zeros_like(x))
    for operand in structures(x, layout):
        if gradient and (operand.is_floating_point() or operand.is_complex()):
            operand = operand.requires_grad_()
        yield SampleInput(operand, args=sample.args, kwargs=sample.kwargs)  # type: ignore[no-untyped-call]


def structures(x: torch.Tensor, layout: torch.layout) -> Iterator[torch.Tensor]:
    """Yields sparse tensors in the layout.

    COO tensors are coalesced, uncoalesced and with dense dimensions; compressed ones are single and batched.
    """
    if layout == torch.sparse_coo:
        plain = x.to_sparse()
        yield plain
        places, values = ((member[..., :1], member) for member in (plain.indices(), plain.values()))
        yield torch.sparse_coo_tensor(torch.cat(places, -1), torch.cat(values, -1), x.shape)
        if x.dim() > 1:
            yield x.to_sparse(1)
        return
    blocks = BLOCKS if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    rows, columns = (size - size % 2 for size in x.shape[:2])
    matrix = x[:rows, :columns]
    yield matrix.to_sparse(layout=layout, blocksize=blocks, dense_dim=x.dim() - 2)
    yield torch.stack([matrix, matrix]).to_sparse(layout=layout, blocksize=blocks, dense_dim=x.dim() - 2)
