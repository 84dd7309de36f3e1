# SPDX-License-Identifier: BSD-3-Clause
"""Compares random calls with the CPU: any entry of PyTorch's table of operators (OpInfo), any dtype and layout.

Some calls are made with one or two of a few flags. A seed alone determines a call, and a failure prints the seed that
repeats it.
"""

from __future__ import annotations

import copy
import functools
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..bring_up import Setup
from ..manifest import OperatorExpectations
from ..pool import CompletedTask, FailedTask, Processes, WorkerPool
from . import device_under_test, entries
from .check_dtypes import ALL, NUMBERS, change, comparable, is_allowed
from .check_random import has_determined_values
from .comparison import difference, tolerance_of
from .flags import DEFAULT_DTYPE, DETERMINISTIC, MATMUL, Flag
from .outcome import CallOutcome, attempt, warning_difference
from .tasks import TABLE, Entries
from .transfer import copy_inputs, inputs_of, tensors_in, whole_storage

SAMPLES = 24  # the first samples of an entry and dtype, from which one is drawn
SECONDS_PER_CALL = 120


def deterministic_with_warnings(enabled: bool) -> None:
    """Makes algorithms deterministic, with a warning where there is none; False restores the default."""
    torch.use_deterministic_algorithms(enabled, warn_only=enabled)


# Their names are drawn in sorted order, so another name gives seeds other calls.
FLAGS = {
    "deterministic": DETERMINISTIC,
    "deterministic, warning": Flag("deterministic, warning", deterministic_with_warnings, False, True),
    "float32 matmul: medium": MATMUL,
    "default dtype float64": DEFAULT_DTYPE,
    "no grad": Flag("no grad", torch.set_grad_enabled, True, False),
}


# Functions that return a tensor of equal shape in another memory layout. All except expanded() keep the values.


def as_it_is(x: torch.Tensor, _: Any) -> torch.Tensor:
    return x


def transposed(x: torch.Tensor, _: Any) -> torch.Tensor:
    return x.mT.contiguous().mT if x.dim() > 1 else x


def permuted(x: torch.Tensor, chance: random.Random) -> torch.Tensor:
    order = list(range(x.dim()))
    chance.shuffle(order)
    return x.permute(order).contiguous().permute([order.index(dim) for dim in range(x.dim())])


def every_second(x: torch.Tensor, _: Any) -> torch.Tensor:
    if not x.dim():
        return x
    wide = torch.empty((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def with_offset(x: torch.Tensor, _: Any) -> torch.Tensor:
    buffer = torch.empty(x.numel() + 3, dtype=x.dtype)
    buffer[3:] = x.reshape(-1)
    return buffer[3:].view(x.shape)


def expanded(x: torch.Tensor, chance: random.Random) -> torch.Tensor:
    if not x.numel() or not x.dim():
        return x
    dim = chance.randrange(x.dim())
    return x.narrow(dim, 0, 1).expand(x.shape)


def channels_last(x: torch.Tensor, _: Any) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def conjugated(x: torch.Tensor, _: Any) -> torch.Tensor:
    return torch.conj_physical(x).conj() if x.is_complex() else x


LAYOUTS = (as_it_is, as_it_is, transposed, permuted, every_second, with_offset, expanded, channels_last, conjugated)


class RandomCall:
    """The call that a seed determines: operator, dtype, layouts of the operands, flags, and overload (`form`)."""

    def __init__(self, seed: int, table: list[Any]) -> None:
        chance = random.Random(seed)
        self.op = chance.choice(table)
        listed = entries.dtypes_of(self.op)
        self.dtype = chance.choice(listed if chance.random() < 0.6 else ALL)
        base = self.dtype if self.dtype in listed else listed[0]
        self.flags = chance.sample(sorted(FLAGS), chance.choice((0, 0, 1, 2)))
        self.form = chance.choice(("plain", "plain", "out", "in place"))
        samples = entries.samples_of(self.op, base)[:SAMPLES]
        self.layouts: list[str] = []
        self.inputs: Any = None
        if samples:
            inputs = change(inputs_of(chance.choice(samples)), base, self.dtype)
            self.inputs = pytree.tree_map_only(torch.Tensor, lambda x: self.lay_out(x, chance), inputs)
        self.out_layout = chance.choice(LAYOUTS)
        self.chance = chance

    def lay_out(self, x: torch.Tensor, chance: random.Random) -> torch.Tensor:
        """Returns the tensor in a random layout, or unchanged if its dtype does not allow that."""
        layout = chance.choice(LAYOUTS)
        self.layouts.append(layout.__name__)
        try:
            return layout(x.detach(), chance) if x.layout == torch.strided else x
        except (NotImplementedError, RuntimeError):  # the dtype does not support this copy
            return x

    def describe(self) -> str:
        """Returns the call in one line: operator, dtype, form, shapes, layouts and flags."""
        shapes = [tuple(tensor.shape) for tensor in tensors_in(self.inputs)]
        return (
            f"{self.op.full_name} {entries.name_of(self.dtype)} {self.form} {shapes} {self.layouts} "
            f"{self.out_layout.__name__ if self.form == 'out' else ''} {self.flags}"
        )

    def run(self, device: str) -> CallOutcome:
        """Runs the call on a device. The outcome contains the results, and afterwards the storages of all operands."""

        def compute() -> Any:
            args, kwargs = self.inputs
            if self.form == "out":
                kwargs = {**kwargs, "out": self.out}
            args, kwargs = copy_inputs(self.op, (args, kwargs), device)
            function = self.op.get_inplace() if self.form == "in place" else self.op
            result = function(*args, **kwargs)
            return result, [
                whole_storage(tensor) for tensor in tensors_in((args, kwargs)) if tensor.layout == torch.strided
            ]

        torch.manual_seed(7)
        for flag in self.flags:
            FLAGS[flag].change()
        try:
            return attempt(compute, device)
        finally:
            for flag in self.flags:
                FLAGS[flag].restore()

    @functools.cached_property
    def is_determined(self) -> bool:
        """True if the numbers can be compared: none are random, and no result is uninitialized memory."""
        function = self.op.get_inplace() if self.form == "in place" else self.op
        return has_determined_values(self.op, self.inputs, lambda args, kwargs: function(*args, **kwargs))

    def prepare(self) -> bool:
        """Makes the out= operand, if there is one.

        Returns False if the manifest excludes the call or expects it to fail, or the entry does not support it.
        """
        expected = expectations_of(self.op)
        if expected.fails or not device_under_test.manifest().runs(self.op.full_name):
            return False
        if expected.dtypes and entries.name_of(self.dtype) not in expected.dtypes:
            return False
        if self.inputs is None or (self.form == "in place" and not self.op.get_inplace()):
            return False
        if self.form == "out":
            plain = attempt(lambda: self.op(*copy_inputs(self.op, self.inputs, "cpu")[0], **self.inputs[1]), "cpu")
            tensors = tensors_in(plain.result)
            if not self.op.supports_out or plain.error is not None or not tensors:
                return False
            if any(tensor.layout != torch.strided for tensor in tensors):
                return False
            try:
                self.out = pytree.tree_map_only(
                    torch.Tensor, lambda x: self.out_layout(torch.zeros_like(x), self.chance), plain.result
                )
            except NotImplementedError:  # PyTorch cannot write to dtypes smaller than a byte
                return False
        return True


def expectations_of(op: Any) -> OperatorExpectations:
    """Returns the expectations for an entry in the manifest, the file of the backend's expected failures."""
    return device_under_test.manifest().operator(op.full_name)


def difference_of(call: RandomCall) -> str | None:
    """Runs a call on both devices and returns the difference in one line, or None."""
    theirs, ours = call.run("cpu"), call.run(device_under_test.device())
    found = outcome_difference(call, ours, theirs)
    if found and not ours.is_asynchronous and (is_expected_difference(call) or agrees_on_dense_operands(call, ours)):
        return None
    if found or ours.error is not None or theirs.error is not None:
        return found
    for mine, reference in zip(tensors_in(ours.result[0]), tensors_in(theirs.result[0]), strict=True):
        if mine.layout == torch.strided and mine.stride() != reference.stride() and mine.numel() > 1:
            if expectations_of(call.op).strides or is_expected_difference(call):
                return None
            return f"strides {mine.stride()}, not {reference.stride()}"
    for mine, reference in zip(ours.result[1], theirs.result[1], strict=True):
        size = min(mine.numel(), reference.numel())
        memory = comparable(mine[:size])  # passed as may_be_on_cpu, because some operands are there
        found = values_difference(call, memory, comparable(reference[:size]), theirs, may_be_on_cpu=[memory])
        if found:
            return f"an operand or the memory around it differs after the call: {found}"
    return None


def outcome_difference(call: RandomCall, ours: CallOutcome, theirs: CallOutcome) -> str | None:
    """Returns the difference of errors, warnings or results, or None."""
    if theirs.error is not None or ours.error is not None:
        if ours.is_asynchronous:
            known = bool(expectations_of(call.op).allows_asynchronous_error) and theirs.error is not None
            return None if known else f"the device is lost: {ours.describe()}; the CPU: {theirs.describe()}"
        if is_allowed(call.op, call.dtype, ours, theirs) or has_two_faults(call, ours) or needs_no_kernel(call):
            return None
        return f"{ours.describe()}; the CPU: {theirs.describe()}"
    if set(ours.warnings) - set(theirs.warnings):
        return warning_difference(ours, theirs)
    return values_difference(call, comparable(ours.result[0]), comparable(theirs.result[0]), theirs)


def values_difference(
    call: RandomCall, ours: Any, theirs: Any, outcome: CallOutcome, may_be_on_cpu: Sequence[torch.Tensor] = ()
) -> str | None:
    """Returns the difference of values within the entry's tolerance, widened for the results in `outcome`, or None."""
    tolerance = widened(tolerance_of(call.op, call.dtype), outcome.result)
    return difference(ours, theirs, tolerance, values=call.is_determined, may_be_on_cpu=may_be_on_cpu)


def has_two_faults(call: RandomCall, ours: CallOutcome) -> bool:
    """Returns True if the CPU raises the device's type of exception for the call in float32.

    A call in an uncommon dtype may have two faults. The order in which PyTorch checks them is not specified.
    """
    if ours.error is None or call.dtype in NUMBERS:
        return False
    usual = copy.copy(call)
    usual.inputs = in_single_precision(call.inputs, call.dtype)
    if call.form == "out":
        usual.out = in_single_precision(call.out, call.dtype)
    return type(ours.error) is type(usual.run("cpu").error)


def in_single_precision(tree: Any, dtype: torch.dtype) -> Any:
    """Returns the arguments with dtype arguments and tensors of one dtype in float32, with unchanged strides."""

    def convert(x: torch.Tensor) -> Any:
        if x.layout != torch.strided or x.dtype != dtype:
            return x
        return change(whole_storage(x), dtype, torch.float32).as_strided(x.size(), x.stride(), x.storage_offset())

    return change(pytree.tree_map_only(torch.Tensor, convert, tree), dtype, torch.float32)


def needs_no_kernel(call: RandomCall) -> bool:
    """Returns True for empty operands in an uncommon dtype, for which some CPU functions do not check the dtype."""
    return call.dtype not in NUMBERS and not any(tensor.numel() for tensor in tensors_in(call.inputs))


# The beginning of the name of the kit's check that makes such calls, by form.
CHECKS = {"plain": "layouts", "out": "writes: out", "in place": "writes: in-place"}


def is_expected_difference(call: RandomCall) -> bool:
    """Returns True if the manifest lists a difference for the call."""
    if expectations_of(call.op).deterministic and any(flag.startswith("deterministic") for flag in call.flags):
        return True
    return any(check.startswith(CHECKS[call.form]) for check in expectations_of(call.op).differs)


def agrees_on_dense_operands(call: RandomCall, ours: CallOutcome) -> bool:
    """Returns True if the device's result is that of the CPU for dense operands, without out=.

    Then the CPU is wrong: a few of its kernels reject strided operands, or read or write beyond them.
    """
    return call.form != "in place" and not outcome_difference(call, ours, on_dense_operands(call).run("cpu"))


def on_dense_operands(call: RandomCall) -> RandomCall:
    """Returns the call with contiguous operands and without out=."""
    dense = copy.copy(call)
    dense.form = "plain"
    dense.inputs = pytree.tree_map_only(
        torch.Tensor, lambda x: x if x.layout != torch.strided or x.is_contiguous() else x.contiguous(), call.inputs
    )
    return dense


def widened(tolerance: tuple[float, float], result: Any) -> tuple[float, float]:
    """Returns the tolerance with an absolute part of at least the rounding of the largest element.

    Any element may be a small difference of large ones.
    """
    relative, absolute = tolerance
    largest = 0.0
    for tensor in tensors_in(result):
        if tensor.dtype in NUMBERS and tensor.is_floating_point() and tensor.layout == torch.strided and tensor.numel():
            largest = max(largest, tensor.detach().double().abs().nan_to_num(0, 0, 0).max().item())
    return relative, max(absolute, relative * largest)


@dataclass(frozen=True)
class RunRandomCall:
    """A picklable object whose `run()`, in a worker process, makes the call of a seed."""

    table: str
    seed: int

    def run(self) -> CompletedTask:
        """Returns (True if the call was made, the failure as text or None)."""
        call = RandomCall(self.seed, runnable_entries(self.table))
        try:
            if not call.prepare():
                return CompletedTask((False, None))
            found = difference_of(call)
        except Exception as error:
            found = f"the fuzzer failed: {type(error).__name__}: {error}"
            device_under_test.reset()
        failure = f"{found} [{call.describe()}]" if found else None
        return CompletedTask((True, failure), bool(device_under_test.unusable_reason()))


@functools.cache
def runnable_entries(table: str) -> list[Any]:
    """Returns the entries of a table that are run in at least one dtype."""
    return [op for op in entries.load(table) if entries.dtypes_of(op)]


def fuzz(
    setup: Setup,
    seconds: float,
    first: int,
    count: float = math.inf,
    table: str = TABLE,
    processes: Processes | None = None,
) -> tuple[dict[int, str], int]:
    """Makes calls for a number of seconds, with seeds from `first` on, and prints failures.

    Returns the failures by seed, and the number of calls that were made. A seed makes no call if prepare() declines it.
    `count` limits the number of seeds.
    """
    failures, calls, seed, end = {}, 0, first, time.monotonic() + seconds
    prepare = (setup, Entries(table))
    with WorkerPool(prepare, 1, SECONDS_PER_CALL, setup.manifest.environment, processes=processes) as pool:
        while time.monotonic() < end and seed < first + count:
            outcome = pool.ask(RunRandomCall(table, seed))
            made, failure = (True, outcome.describe()) if isinstance(outcome, FailedTask) else outcome.value
            calls += made
            if failure:
                failures[seed] = failure
                print(f"seed {seed}: {failure}", flush=True)
            seed += 1
    return failures, calls
