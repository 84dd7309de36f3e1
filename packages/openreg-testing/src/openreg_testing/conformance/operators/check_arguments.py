# SPDX-License-Identifier: BSD-3-Clause
"""Checks calls in which one argument is changed. The device must raise if the CPU raises, and else compute its result.

It must raise in the call itself, not later by an asynchronous error. Each changed call is a *case* with a number. A
fault of the device has one of five names, which a manifest (the file of a backend's expected failures) may list under
`differs`:

- ``arguments: lost``: the kernel causes an asynchronous error, which makes the device unusable. On a GPU, invalid
  indices in device memory have this effect.
- ``arguments: bug``: an internal assertion of PyTorch or a kernel fails, but the CPU raises an error for users.
- ``arguments: raises``: the device raises, but the CPU computes a result.
- ``arguments: computes``: the device computes a result, but the CPU raises, or one tensor is on another device.
- ``arguments: result``: both compute, but the results differ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import device_under_test
from ._platform import little_memory
from .changes import CPU, SECOND, ArgumentChange, call_of, changes
from .check_random import draws_random_numbers
from .checks import CASE_PREFIX
from .comparison import difference
from .entries import UNINITIALIZED, samples_of
from .outcome import CallOutcome, attempt
from .report import EntryReport
from .transfer import Inputs, copy_inputs, inputs_of, tensors_in, with_moved

SAMPLES = 3
LARGEST = 10_000  # maximal number of elements of a sample's operands; other checks run the larger samples
COPIES = 64  # copies of a result that are freed, so that the next call gets memory with their content
NEW_TENSORS = (torch.ops.aten.empty, torch.ops.aten.empty_strided, torch.ops.aten.empty_like, torch.ops.aten.new_empty)
MEMORY = 4 << 30  # maximal memory of a call in bytes; calls that need more are not compared


def check_arguments(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Runs the changed calls numbered in `report.cases` on the CPU and on the device, and reports faults."""
    torch.zeros(1, device=device_under_test.device())  # initializes the device before the limit of memory applies
    begin, end = report.cases
    with little_memory(MEMORY):
        for number, change in islice(enumerate(changes_of(op, dtype, report)), begin, end):
            report.calls += 1
            found = fault(op, change, number, report)
            if found:
                kind, reason = found
                report.fail(f"arguments: {kind}", f"{change.what}: {reason}: {call_of(op.name, change.inputs)}"[:600])


def changes_of(op: Any, dtype: torch.dtype, report: EntryReport) -> Iterator[ArgumentChange]:
    """Yields the changes of a few small samples, in a fixed order. Omits those to a device that does not exist."""
    for sample in small_samples(op, dtype, report):
        for change in changes(inputs_of(sample)):
            if not change.to or place_of(change) is not None:
                yield change


def place_of(change: ArgumentChange) -> torch.device | None:
    """Returns the device to which a change moves a tensor, or None if it does not exist or is the device under test."""
    name = device_under_test.device()
    if name == "cpu" or (change.to == SECOND and torch.accelerator.device_count() < 2):
        return None
    return torch.device("cpu") if change.to == CPU else torch.device(name, 1)


def small_samples(op: Any, dtype: torch.dtype, report: EntryReport) -> list[Any]:
    """Returns at most SAMPLES of the table's samples, none with more than LARGEST elements."""
    small = [
        sample
        for sample in samples_of(op, dtype)
        if sum(tensor.numel() for tensor in tensors_in(inputs_of(sample))) <= LARGEST
    ]
    return report.choose(small, SAMPLES)


def fault(op: Any, change: ArgumentChange, number: int, report: EntryReport) -> tuple[str, str] | None:
    """Runs a changed call on both devices and returns (one of the five names above, reason), or None."""
    ours = call(op, change, device_under_test.device(), number)
    theirs = call(op, change, "cpu", number)
    if lacks_memory(theirs) or lacks_memory(ours):
        return None
    if ours.is_asynchronous:
        is_listed = device_under_test.manifest().operator(op.full_name).allows_asynchronous_error
        return None if is_listed else ("lost", f"{ours.describe()}; the CPU: {theirs.describe()}")
    if ours.error is not None:
        if ours.is_bug and not theirs.is_bug:
            return "bug", f"{ours.describe()}; the CPU: {theirs.describe()}"
        if theirs.error is None and not change.to:
            return "raises", ours.describe()
        return None
    if theirs.error is not None:
        return "computes", f"the CPU: {theirs.describe()}"
    if change.to:
        return "computes", "a tensor of another device is accepted"
    tolerance = report.tolerance or (0, 0)
    values = op.name not in UNINITIALIZED
    found = difference(ours.result, theirs.result, tolerance, values=values, may_be_on_cpu=tensors_in(change.inputs))
    if found and is_defined(op, change, theirs, number, tolerance):
        return "result", found
    return None


def is_defined(
    op: Any, change: ArgumentChange, theirs: CallOutcome, number: int, tolerance: tuple[float, float]
) -> bool:
    """Returns True if the CPU's result can be reproduced, whatever its memory contained before.

    Some operators draw random numbers, some kernels read beyond an operand, and some write only a part of a result.
    """
    if draws_random_numbers(op, change.inputs, lambda args, kwargs: op(*args, **kwargs)):
        return False
    results = tensors_in(theirs.result)
    zeroed = ZeroedMemory()  # type: ignore[no-untyped-call]
    for memory in (freed_memory(results, 0), freed_memory(results, 1), filled_memory(), zeroed):
        print_case(number, "cpu")
        args, kwargs = arguments_on(op, change, "cpu")
        with memory:
            again = attempt(partial(op, *args, **kwargs), "cpu")
        if again.error is not None or difference(
            again.result, theirs.result, tolerance, may_be_on_cpu=tensors_in(again.result)
        ):
            return False
    return True


@contextmanager
def freed_memory(results: list[torch.Tensor], pattern: int) -> Iterator[None]:
    """Frees memory that is filled with `pattern`, so that a call in the context probably gets it for its results."""
    freed = [torch.full(result.shape, pattern, dtype=result.dtype) for result in results for _ in range(COPIES)]
    freed.clear()
    yield


@contextmanager
def filled_memory() -> Iterator[None]:
    """Makes PyTorch fill new tensors with NaN or the largest integer; kernels' own buffers are not filled."""
    deterministic: Any = torch.utils.deterministic  # a module with a property, which mypy does not see
    algorithms = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    fills = deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(algorithms, warn_only=warns)
        deterministic.fill_uninitialized_memory = fills


class ZeroedMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Makes the new tensors of composite functions zero.

    filled_memory() makes bools True, and so cannot show that a bool which happened to be True was never written.
    """

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        return result.zero_() if func.overloadpacket in NEW_TENSORS else result


def call(op: Any, change: ArgumentChange, device: str, number: int) -> CallOutcome:
    """Runs the changed call on a device and returns its outcome."""
    print_case(number, "cpu" if device == "cpu" else "device")
    args, kwargs = arguments_on(op, change, device)
    return attempt(partial(op, *args, **kwargs), device)


def print_case(number: int, where: str) -> None:
    """Prints the number and device of the next call, so that the parent can identify a call that ends the process."""
    print(CASE_PREFIX, number, where, file=sys.stderr, flush=True)


def arguments_on(op: Any, change: ArgumentChange, device: str) -> Inputs:
    """Returns copies of the arguments on `device`. A tensor that the change moves is on the device of place_of()."""
    torch.manual_seed(2026)
    inputs: Inputs = copy_inputs(op, change.inputs, device)
    place = place_of(change) if device != "cpu" else None
    return inputs if change.moved is None or place is None else with_moved(inputs, change.moved, place)


def lacks_memory(outcome: CallOutcome) -> bool:
    """Returns True if a call needed more memory than MEMORY."""
    text = str(outcome.error)
    return isinstance(outcome.error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in text
