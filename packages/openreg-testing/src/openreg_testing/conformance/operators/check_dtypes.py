# SPDX-License-Identifier: BSD-3-Clause
"""Checks the dtypes that an operator's OpInfo (its entry) does not list.

If the CPU raises, the device must raise on the calling line; otherwise it must compute the same result. It must stay
usable. `is_allowed()` has the exceptions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal import common_dtype as dtypes
from torch.utils import _pytree as pytree

from . import device_under_test
from .check_random import has_determined_values
from .comparison import difference
from .entries import dtypes_of, name_of, samples_of
from .outcome import CallOutcome, attempt
from .report import EntryReport
from .transfer import Inputs, copy_inputs, inputs_of

SAMPLES = 4
# Quantized dtypes are left out, because quantized tensors need other dispatch keys.
ALL = sorted(
    {item for item in vars(torch).values() if isinstance(item, torch.dtype) and not name_of(item).startswith("q")},
    key=str,
)
# The common dtypes. All others are uncommon.
NUMBERS = {
    *dtypes.all_types_and_complex(),  # type: ignore[no-untyped-call]
    torch.half,
    torch.bfloat16,
    torch.bool,
}
ONE_OF_EACH_OTHER_KIND = (
    torch.float8_e5m2,
    torch.uint16,
    torch.complex32,
    torch.bits8,
    torch.uint4,  # type: ignore[attr-defined]
)
QUICK = sorted({*NUMBERS, *ONE_OF_EACH_OTHER_KIND}, key=str)  # for runs that limit the samples, as --quick does


def check_dtypes(op: Any, report: EntryReport) -> None:
    """Converts a few samples of the entry to each dtype that the entry does not list, and compares the calls."""
    if not device_under_test.manifest().operator(op.full_name).comparable:
        return
    first = getattr(torch, report.dtype)
    for sample in report.choose(samples_of(op, first), SAMPLES):
        inputs = inputs_of(sample)
        values = has_determined_values(op, inputs, lambda args, kwargs: op(*args, **kwargs))
        for dtype in ALL if report.variant_samples is None else QUICK:
            if dtype not in dtypes_of(op):
                check_dtype(op, change(inputs, first, dtype), dtype, report, sample, values)


def check_dtype(op: Any, inputs: Inputs, dtype: torch.dtype, report: EntryReport, sample: Any, values: bool) -> None:
    """Compares one call with the CPU. Without `values`, the numbers of the results are not compared."""
    theirs = attempt(lambda: call(op, inputs, "cpu"), "cpu")
    ours = attempt(lambda: call(op, inputs, device_under_test.device()), device_under_test.device())
    name = f"dtypes {name_of(dtype)}"
    if ours.is_asynchronous:
        report.fail(name, f"the device is lost: {ours.describe()}; the CPU: {theirs.describe()}", sample)
    elif ours.error is not None or theirs.error is not None:
        if not is_allowed(op, dtype, ours, theirs):
            report.fail(name, f"{ours.describe()}; the CPU: {theirs.describe()}", sample)
    else:
        found = difference(comparable(ours.result), comparable(theirs.result), report.tolerance, values=values)
        if found:
            report.fail(name, found, sample)


def is_allowed(op: Any, dtype: torch.dtype, ours: CallOutcome, theirs: CallOutcome) -> bool:
    """Returns True if the exception types are equal, or if the difference is acceptable.

    If only the CPU raises, that is acceptable in an uncommon dtype, in one that PyTorch lists for CUDA, or if the
    manifest allows it (more_dtypes). The manifest may also allow an error in an uncommon dtype (fewer_dtypes), and two
    different subclasses of RuntimeError (other_errors).
    """
    if type(ours.error) is type(theirs.error):
        return True
    known = device_under_test.manifest().operator(op.full_name)
    if ours.error is None:
        return dtype not in NUMBERS or dtype in (op.dtypesIfCUDA or ()) or bool(known.more_dtypes)
    if theirs.error is None:
        return dtype not in NUMBERS and bool(known.fewer_dtypes)
    both = isinstance(ours.error, RuntimeError) and isinstance(theirs.error, RuntimeError)
    return both and bool(known.other_errors)


def call(op: Any, inputs: Inputs, device: str) -> Any:
    """Returns the operator's result for copies of the inputs on a device."""
    args, kwargs = copy_inputs(op, inputs, device)
    return op(*args, **kwargs)


def change(inputs: Any, old: torch.dtype, new: torch.dtype) -> Any:
    """Returns the inputs with every tensor and dtype argument of dtype `old` converted to `new`.

    If PyTorch cannot convert to `new`, the tensors are zeros of that dtype.
    """

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, torch.dtype):
            return new if leaf == old else leaf
        if not isinstance(leaf, torch.Tensor) or leaf.dtype != old:
            return leaf
        leaf = leaf.detach()
        if name_of(new).startswith("uint") and old.is_signed and not old.is_complex:
            leaf = leaf.abs()  # a negative number would become a huge one, and some kernels loop that many times
        try:
            return leaf.to(new)
        except (RuntimeError, NotImplementedError):  # such as bits8 and dtypes smaller than a byte
            plain = torch.empty(leaf.shape, dtype=new)
            plain.untyped_storage().fill_(0)  # type: ignore[attr-defined]
            return plain

    return pytree.tree_map(convert, inputs)


def comparable(result: Any) -> Any:
    """Returns results whose uncommon dtypes are converted to ones that PyTorch can compare, or else to their bytes."""

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.dtype in NUMBERS:
            return leaf
        try:
            return leaf.to(torch.complex64 if leaf.is_complex() else torch.float64)
        except NotImplementedError:
            if leaf.layout != torch.strided:
                return leaf  # its numbers are in several storages
            return torch.empty(0, dtype=torch.uint8, device=leaf.device).set_(leaf.untyped_storage())

    return pytree.tree_map(convert, result)
