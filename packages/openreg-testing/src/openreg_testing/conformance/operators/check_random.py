# SPDX-License-Identifier: BSD-3-Clause
"""Checks the results of operators that draw random numbers, after they differed from those of the CPU.

A seed must repeat the numbers, two calls must return different ones if those of the CPU do, and their distribution must
be that of the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import device_under_test
from .comparison import difference
from .entries import UNINITIALIZED
from .outcome import CallOutcome, attempt
from .reference import in_wider_dtype
from .report import EntryReport
from .transfer import Inputs, copy_inputs, densified, tensors_in

DRAWS = 128  # calls on each device, whose numbers are compared as distributions
REPEATS = 12  # if two calls return equal numbers, as many further calls must, too, before that counts as a failure
CHECKED_SAMPLES = 2  # samples of an entry and dtype whose distribution is checked; the others differ only in size
FALSE_POSITIVE_RATE = 1e-9  # probability with which a correct distribution fails each of the two tests of a sample
ROUNDING = 1e-2  # numbers that differ by less count as equal, because bfloat16 has three digits


class RandomOpDetector(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that detects operators that PyTorch tags as drawing from a generator."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def draws_random_numbers(op: Any, inputs: Inputs, computation: Callable[..., Any]) -> bool:
    """Returns True if the operator draws random numbers for these inputs."""
    args, kwargs = copy_inputs(op, inputs, "cpu")
    with RandomOpDetector() as mode:
        attempt(lambda: computation(args, kwargs), "cpu")
    return bool(mode.seen)


def has_determined_values(op: Any, inputs: Inputs, computation: Callable[..., Any]) -> bool:
    """Returns True if the numbers of the results can be compared: none is random or uninitialized memory."""
    return op.name not in UNINITIALIZED and not draws_random_numbers(op, inputs, computation)


def random_difference(op: Any, inputs: Inputs, computation: Callable[..., Any], report: EntryReport) -> str | None:
    """Returns what is wrong with the device's random numbers in one line, or None."""

    def once(device: str) -> CallOutcome:
        args, kwargs = copy_inputs(op, inputs, device)
        return attempt(lambda: computation(args, kwargs), device)

    torch.manual_seed(7)
    first = once(device_under_test.device())
    second = once(device_under_test.device())
    torch.manual_seed(7)
    again = once(device_under_test.device())
    for outcome in (first, second, again):
        if outcome.error is not None:
            return outcome.describe()
    dtype = getattr(torch, report.dtype)
    narrow = dtype if once("cpu").error is not None else None  # not None: the CPU computes in a wider dtype

    def reference() -> CallOutcome:
        return once("cpu") if narrow is None else in_wider_dtype(op, inputs, dtype, computation) or once("cpu")

    theirs = [reference() for _ in range(2)]
    found = difference(first.result, theirs[0].result, values=False, narrow=narrow)
    if found:
        return found
    if not same(first.result, again.result):
        return "not repeatable: two calls after the same seed returned different numbers"
    # Two small results may be equal by chance, so further calls follow.
    repeats = same(first.result, second.result) and all(
        same(first.result, once(device_under_test.device()).result) for _ in range(REPEATS)
    )
    if repeats and not all(same(theirs[0].result, reference().result) for _ in range(REPEATS)):
        return "successive calls returned the same numbers"
    report.random_samples += 1
    if report.random_samples > CHECKED_SAMPLES:
        return None
    return distribution_difference(
        [numbers_in(once(device_under_test.device()).result) for _ in range(DRAWS)],
        [numbers_in(reference().result) for _ in range(DRAWS)],
    )


def same(one: Any, other: Any) -> bool:
    """Returns True if the tensors of two results have equal shapes and numbers, wherever they are."""
    mine, theirs = ([densified(tensor) for tensor in tensors_in(values)] for values in (one, other))
    return all(
        a.shape == b.shape and torch.allclose(a.detach().cpu(), b.detach().cpu(), 0, 0, equal_nan=True)
        for a, b in zip(mine, theirs, strict=True)
    )


def numbers_in(values: Any) -> torch.Tensor:
    """Returns all numbers of all tensors as one flat float64 tensor on the CPU."""
    parts = [densified(tensor).detach().cpu().resolve_conj().resolve_neg() for tensor in tensors_in(values)]
    parts = [torch.view_as_real(part) if part.is_complex() else part for part in parts]
    return torch.cat([torch.empty(0, dtype=torch.float64), *(part.reshape(-1).double() for part in parts)])


def distribution_difference(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> str | None:
    """Compares draws by the Kolmogorov-Smirnov test, for each element and for all together. Returns a line or None."""
    mine, reference = torch.stack(ours), torch.stack(theirs)
    elements = mine.shape[1]
    if not elements:
        return None
    mine, reference = mine.nan_to_num(), reference.nan_to_num()
    # Elements of one result may depend on each other: feature dropout drops a whole map. So the test of all elements
    # together assumes fewer independent draws than there are elements.
    cases = ((mine, reference, len(ours)), (mine.view(-1, 1), reference.view(-1, 1), len(ours) * math.sqrt(elements)))
    for one, other, effective in cases:
        allowed = math.sqrt(-math.log(FALSE_POSITIVE_RATE / one.shape[1] / 2) / effective)
        distance = ks_distance(one, other)
        if distance > allowed:
            return f"distributed differently: Kolmogorov-Smirnov distance {distance:.3f}, at most {allowed:.3f} allowed"
    return None


def ks_distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Returns the largest distance of the distribution functions over all columns; close numbers count as equal."""
    mine, theirs = one.t().contiguous().sort().values, other.t().contiguous().sort().values

    def excess(reference: torch.Tensor, sorted_numbers: torch.Tensor) -> torch.Tensor:
        upper = (reference + ROUNDING * (1 + reference.abs())).contiguous()
        at_most = torch.searchsorted(sorted_numbers, upper, right=True)
        return torch.arange(1, reference.shape[1] + 1) / reference.shape[1] - at_most / sorted_numbers.shape[1]

    return float(max(excess(mine, theirs).max(), excess(theirs, mine).max()))
