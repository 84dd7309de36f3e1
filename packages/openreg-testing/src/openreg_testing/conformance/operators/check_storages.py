# SPDX-License-Identifier: BSD-3-Clause
"""Every operand of a sample without its memory, one at a time: its storage was freed, or cut to half.

A library does so (``untyped_storage().resize_(0)``, as FSDP frees what it gathered). The call that uses such a tensor
has to be refused: ``storages: computes`` is the fault that it gave a result, ``storages: lost`` that the device
stopped, and ``storages: bug`` that an assertion failed. Views are no use of the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from . import subject
from .changes import call_of
from .check_arguments import announce, small_samples
from .entries import UNINITIALISED
from .outcome import attempt
from .transfer import Inputs, copy_inputs, inputs_of, tensors_in

if TYPE_CHECKING:
    from .examination import Report


def check_storages(op: Any, dtype: torch.dtype, report: Report) -> None:
    """Tries the cases that the report wants, by their numbers."""
    if op.name in UNINITIALISED:
        return
    begin, end = report.cases
    for number, (inputs, position, part) in islice(enumerate(cases(op, dtype, report)), begin, end):
        report.calls += 1
        found = fault(op, inputs, position, part, number)
        if found:
            kind, reason = found
            where = f"operand {position}, {'half' if part else 'none'} of its storage"
            report.fail(f"storages: {kind}", f"{where}: {reason}: {call_of(op.name, inputs)}"[:600])


def cases(op: Any, dtype: torch.dtype, report: Report) -> Iterator[tuple[Inputs, int, float]]:
    """The arguments, the position of an operand among their tensors, and what part of its storage is left."""
    for sample in small_samples(op, dtype, report):
        inputs = inputs_of(sample)
        for position, tensor in enumerate(tensors_in(inputs)):
            if tensor.layout == torch.strided and tensor.numel() > 1 and type(tensor) is torch.Tensor:
                yield from ((inputs, position, part) for part in (0, 0.5))


def fault(op: Any, inputs: Inputs, position: int, part: float, number: int) -> tuple[str, str] | None:
    """What is wrong with a call, and a reason; None where nothing is."""
    torch.manual_seed(2026)
    args, kwargs = copy_inputs(op, inputs, subject.device())
    operand = tensors_in((args, kwargs))[position]
    storage = operand.untyped_storage()
    if storage.device.type != subject.device():
        return None  # an operand of the host's
    subject.synchronize(subject.device())
    storage.resize_(int(storage.nbytes() * part) // operand.itemsize * operand.itemsize)
    operands = {tensor.untyped_storage()._cdata for tensor in strided_in((args, kwargs))}
    announce(number, "device")
    ours = attempt(partial(op, *args, **kwargs), subject.device())
    if ours.late:
        return "lost", ours.describe()
    if ours.error is not None:
        return ("bug", ours.describe()) if ours.is_bug else None
    results = [tensor for tensor in strided_in(ours.result) if tensor.untyped_storage()._cdata not in operands]
    return ("computes", "a result") if results else None


def strided_in(values: Any) -> list[torch.Tensor]:
    """Those tensors that have a storage."""
    return [leaf for leaf in pytree.tree_leaves(values) if type(leaf) is torch.Tensor and leaf.layout == torch.strided]
