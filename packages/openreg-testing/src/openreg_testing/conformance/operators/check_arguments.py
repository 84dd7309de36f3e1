# SPDX-License-Identifier: BSD-3-Clause
"""Every sample with one of its arguments changed: refused at the call where the CPU refuses it, else the CPU's result.

What goes wrong has one of five names, which a manifest may list under `differs`:

- ``arguments: lost``: the device learns of it after the call, and stops. A GPU does so for indices that lie in its
  memory.
- ``arguments: bug``: an assertion inside of a kernel fails, where the CPU refuses with a message for the user.
- ``arguments: raises``: the CPU computes a result.
- ``arguments: computes``: the CPU refuses, or a tensor of another device is taken beside those of the device.
- ``arguments: result``: both compute, not the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch

from ..._platform import little_memory
from . import subject
from .changes import CPU, SECOND, Change, call_of, changes
from .check_random import draws
from .comparison import difference
from .entries import UNINITIALISED, samples_of
from .outcome import Outcome, attempt
from .tasks import MARK
from .transfer import Inputs, copy_inputs, inputs_of, tensors_in, with_moved

if TYPE_CHECKING:
    from .examination import Report

SAMPLES = 3
LARGEST = 10_000  # elements of all operands of a sample; checks of values have the larger ones
COPIES = 64  # of a result, which leave their numbers in the memory that the next call gets
MEMORY = 4 << 30  # bytes that a call may take: one that takes more than this is not compared


def check_arguments(op: Any, dtype: torch.dtype, report: Report) -> None:
    """Tries the changes that the report wants, by their numbers, each on the CPU and on the device."""
    torch.zeros(1, device=subject.device())  # what the device takes when it starts does not count
    begin, end = report.cases
    with little_memory(MEMORY):
        for number, change in islice(enumerate(changes_of(op, dtype, report)), begin, end):
            report.calls += 1
            found = fault(op, change, number, report)
            if found:
                kind, reason = found
                report.fail(f"arguments: {kind}", f"{change.what}: {reason}: {call_of(op.name, change.inputs)}"[:600])


def changes_of(op: Any, dtype: torch.dtype, report: Report) -> Iterator[Change]:
    """Of a few small samples, in the same order each time."""
    for sample in small_samples(op, dtype, report):
        for change in changes(inputs_of(sample)):
            if not change.to or place_of(change) is not None:
                yield change


def place_of(change: Change) -> torch.device | None:
    """The device that a change moves a tensor to, where there is such a one beside the device that is examined."""
    name = subject.device()
    if name == "cpu" or (change.to == SECOND and torch.accelerator.device_count() < 2):
        return None
    return torch.device("cpu") if change.to == CPU else torch.device(name, 1)


def small_samples(op: Any, dtype: torch.dtype, report: Report) -> list[Any]:
    """Some of the table's samples."""
    small = [
        sample
        for sample in samples_of(op, dtype)
        if sum(tensor.numel() for tensor in tensors_in(inputs_of(sample))) <= LARGEST
    ]
    return report.choose(small, SAMPLES)


def fault(op: Any, change: Change, number: int, report: Report) -> tuple[str, str] | None:
    """What is wrong with a call, as one of the names above and a reason; None where nothing is."""
    ours = call(op, change, subject.device(), number)
    theirs = call(op, change, "cpu", number)
    if lacks_memory(theirs) or lacks_memory(ours):
        return None
    if ours.late:
        is_listed = subject.manifest().operator(op.full_name).late
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
        return "computes", "a tensor of another device is taken"
    tolerance = report.tolerance or (0, 0)
    values = op.name not in UNINITIALISED
    found = difference(ours.result, theirs.result, tolerance, values=values, host=tensors_in(change.inputs))
    if found and is_defined(op, change, theirs, number, tolerance):
        return "result", found
    return None


def is_defined(op: Any, change: Change, theirs: Outcome, number: int, tolerance: tuple[float, float]) -> bool:
    """Whether the CPU gives its result again, whatever its memory held before.

    Some operators draw, some kernels read beside an operand that does not fit, and some leave parts of a result as they
    are.
    """
    if draws(op, change.inputs, lambda args, kwargs: op(*args, **kwargs)):
        return False
    results = tensors_in(theirs.result)
    for memory in (freed_memory(results, 0), freed_memory(results, 1), filled_memory()):
        announce(number, "cpu")
        args, kwargs = arguments_on(op, change, "cpu")
        with memory:
            again = attempt(partial(op, *args, **kwargs), "cpu")
        if again.error is not None or difference(again.result, theirs.result, tolerance, host=tensors_in(again.result)):
            return False
    return True


@contextmanager
def freed_memory(results: list[torch.Tensor], pattern: int) -> Iterator[None]:
    """Memory of the sizes of some results is free, with known numbers in it; a call is likely to get it."""
    freed = [torch.full(result.shape, pattern, dtype=result.dtype) for result in results for _ in range(COPIES)]
    freed.clear()
    yield


@contextmanager
def filled_memory() -> Iterator[None]:
    """PyTorch fills what it allocates with NaN or the largest integer, but not what a kernel allocates for itself."""
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


def call(op: Any, change: Change, device: str, number: int) -> Outcome:
    """The outcome of the changed call on a device."""
    announce(number, "cpu" if device == "cpu" else "device")
    args, kwargs = arguments_on(op, change, device)
    return attempt(partial(op, *args, **kwargs), device)


def announce(number: int, where: str) -> None:
    """Writes down which call comes next, should it end the process."""
    print(MARK, number, where, file=sys.stderr, flush=True)


def arguments_on(op: Any, change: Change, device: str) -> Inputs:
    """Copies on the device, but for the tensor that is to be on another one."""
    torch.manual_seed(2026)
    inputs: Inputs = copy_inputs(op, change.inputs, device)
    place = place_of(change) if device != "cpu" else None
    return inputs if change.moved is None or place is None else with_moved(inputs, change.moved, place)


def lacks_memory(outcome: Outcome) -> bool:
    """Whether a call asked for more than a process of this check has."""
    text = str(outcome.error)
    return isinstance(outcome.error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in text
