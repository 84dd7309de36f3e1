# SPDX-License-Identifier: BSD-3-Clause
"""Inputs that have to fail: the same type of exception as on the CPU, on the calling line."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from . import subject
from .comparison import is_on_one_device
from .outcome import attempt
from .transfer import Inputs, copy_inputs, inputs_of

if TYPE_CHECKING:
    from .examination import Report


def check_errors(op: Any, report: Report) -> None:
    """The table's wrong inputs, moved from the CPU, and those that mix devices."""
    if op.error_inputs_func is None:
        return
    compare_errors(op, op.error_inputs("cpu"), report, "errors")
    for item in op.error_inputs(subject.device()):
        inputs = inputs_of(item.sample_input)
        if is_on_one_device(inputs):
            continue
        args, kwargs = inputs
        ours = attempt(partial(op, *args, **kwargs), subject.device())
        report.error_inputs += 1
        if ours.late or not isinstance(ours.error, item.error_type):
            wanted = item.error_type.__name__
            report.fail("errors", f"mixed devices: {ours.describe()}, not {wanted}", item.sample_input)


def compare_errors(op: Any, items: Iterable[Any], report: Report, check: str) -> None:
    """Wrong inputs on the CPU, and moved from there."""
    for item in items:
        inputs = inputs_of(item.sample_input)
        theirs = call(op, inputs, "cpu")
        ours = call(op, inputs, subject.device())
        report.error_inputs += 1
        if ours.late and theirs.error is not None:
            report.late_errors += 1
            if not subject.manifest().operator(op.full_name).late:
                report.fail(check, f"late {ours.describe()}; the CPU at once: {theirs.describe()}", item.sample_input)
        elif not is_alike(ours.error, theirs.error):
            report.fail(check, f"{ours.describe()}; the CPU: {theirs.describe()}", item.sample_input)


def is_alike(ours: BaseException | None, theirs: BaseException | None) -> bool:
    """Of one type; where the CPU's own check is an assertion about its code, any exception will do."""
    if ours is not None and "Could this error message be improved?" in str(theirs):
        return True
    return type(ours) is type(theirs)


def call(op: Any, inputs: Inputs, device: str) -> Any:
    args, kwargs = copy_inputs(op, inputs, device, makes_tensors=False)
    return attempt(lambda: op(*args, **kwargs), device)
