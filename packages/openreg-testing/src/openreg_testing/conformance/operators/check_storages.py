# SPDX-License-Identifier: BSD-3-Clause
"""Checks calls with one operand whose storage was freed, or cut to half.

Libraries free storages: FSDP calls ``untyped_storage().resize_(0)`` on gathered parameters. A call that uses such a
tensor has to raise. The faults are ``storages: computes`` (it returned a result), ``storages: lost`` (an asynchronous
error stopped the device) and ``storages: bug`` (an assertion failed). Views may be returned, as they use no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import device_under_test
from .changes import call_of
from .check_arguments import print_case, small_samples
from .entries import UNINITIALIZED
from .outcome import attempt
from .report import EntryReport
from .transfer import Inputs, copy_inputs, inputs_of, tensors_in


def check_storages(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Runs the calls ("cases") numbered in `report.cases` and reports faults."""
    if op.name in UNINITIALIZED:
        return
    begin, end = report.cases
    for number, (inputs, position, part) in islice(enumerate(cases(op, dtype, report)), begin, end):
        report.calls += 1
        found = fault(op, inputs, position, part, number)
        if found:
            kind, reason = found
            where = f"operand {position}, {'half' if part else 'none'} of its storage"
            report.fail(f"storages: {kind}", f"{where}: {reason}: {call_of(op.name, inputs)}"[:600])


def cases(op: Any, dtype: torch.dtype, report: EntryReport) -> Iterator[tuple[Inputs, int, float]]:
    """Yields arguments, the position of an operand among their tensors, and the remaining fraction of its storage."""
    for sample in small_samples(op, dtype, report):
        inputs = inputs_of(sample)
        for position, tensor in enumerate(tensors_in(inputs)):
            if tensor.layout == torch.strided and tensor.numel() > 1 and type(tensor) is torch.Tensor:
                yield from ((inputs, position, part) for part in (0, 0.5))


def fault(op: Any, inputs: Inputs, position: int, part: float, number: int) -> tuple[str, str] | None:
    """Runs one case and returns (name of the fault, reason), or None."""
    torch.manual_seed(2026)
    args, kwargs = copy_inputs(op, inputs, device_under_test.device())
    operand = tensors_in((args, kwargs))[position]
    storage = operand.untyped_storage()
    if storage.device.type != device_under_test.device():
        return None  # an operand that stays on the CPU
    device_under_test.synchronize()
    storage.resize_(int(storage.nbytes() * part) // operand.itemsize * operand.itemsize)
    operands = {tensor.untyped_storage()._cdata for tensor in strided_in((args, kwargs))}
    print_case(number, "device")
    ours = attempt(partial(op, *args, **kwargs), device_under_test.device())
    if ours.is_asynchronous:
        return "lost", ours.describe()
    if ours.error is not None:
        return ("bug", ours.describe()) if ours.is_bug else None
    results = [tensor for tensor in strided_in(ours.result) if tensor.untyped_storage()._cdata not in operands]
    return ("computes", "a result") if results else None


def strided_in(values: Any) -> list[torch.Tensor]:
    """Returns the strided tensors of nested values, which have a storage."""
    return [leaf for leaf in pytree.tree_leaves(values) if type(leaf) is torch.Tensor and leaf.layout == torch.strided]
