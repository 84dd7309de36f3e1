# SPDX-License-Identifier: BSD-3-Clause
"""Checks inputs that have to fail: the device raises the CPU's type of exception, on the calling line.

An asynchronous error, which only the synchronization after the call reports, is a failure unless the manifest (the file
of the backend's expected failures) allows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from . import device_under_test
from .comparison import is_on_one_device
from .outcome import attempt
from .report import EntryReport
from .transfer import Inputs, copy_inputs, inputs_of


def check_errors(op: Any, report: EntryReport) -> None:
    """Runs the wrong inputs of PyTorch's table of operators (OpInfo.error_inputs) on the CPU and on the device.

    Those that mix tensors of the device and of the CPU run only on the device.
    """
    if op.error_inputs_func is None:
        return
    compare_errors(op, op.error_inputs("cpu"), report, "errors")
    for item in op.error_inputs(device_under_test.device()):
        inputs = inputs_of(item.sample_input)
        if is_on_one_device(inputs):
            continue
        args, kwargs = inputs
        ours = attempt(partial(op, *args, **kwargs), device_under_test.device())
        report.error_inputs += 1
        if ours.is_asynchronous or not isinstance(ours.error, item.error_type):
            expected = item.error_type.__name__
            report.fail("errors", f"mixed devices: {ours.describe()}, not {expected}", item.sample_input)


def compare_errors(op: Any, items: Iterable[Any], report: EntryReport, check: str) -> None:
    """Runs wrong inputs on the CPU and on the device, and reports different types of exceptions."""
    for item in items:
        inputs = inputs_of(item.sample_input)
        theirs = call(op, inputs, "cpu")
        ours = call(op, inputs, device_under_test.device())
        report.error_inputs += 1
        if ours.is_asynchronous and theirs.error is not None:
            report.asynchronous_errors += 1
            if not device_under_test.manifest().operator(op.full_name).allows_asynchronous_error:
                reason = f"asynchronous {ours.describe()}; the CPU on the calling line: {theirs.describe()}"
                report.fail(check, reason, item.sample_input)
        elif not is_alike(ours.error, theirs.error):
            report.fail(check, f"{ours.describe()}; the CPU: {theirs.describe()}", item.sample_input)


def is_alike(ours: BaseException | None, theirs: BaseException | None) -> bool:
    """Returns True if both exceptions have one type.

    If the CPU's exception is an assertion about PyTorch's own code, any exception of the device is accepted.
    """
    if ours is not None and "Could this error message be improved?" in str(theirs):
        return True
    return type(ours) is type(theirs)


def call(op: Any, inputs: Inputs, device: str) -> Any:
    """Runs the operator with copies of the inputs on a device and returns the outcome."""
    args, kwargs = copy_inputs(op, inputs, device, adds_device=False)
    return attempt(lambda: op(*args, **kwargs), device)
