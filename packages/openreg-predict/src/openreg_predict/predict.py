# SPDX-License-Identifier: BSD-3-Clause
"""Predicts the time of a recorded program on a described chip, with the error, the bound and the memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from openreg_predict.cost import Cost, cost_of
from openreg_predict.description import Description, Validation
from openreg_predict.schedule import Timeline
from openreg_predict.trace import OperatorCall, Program
from openreg_predict.work import NOTHING, OperatorWork

# The range of a prediction without validation: the time is multiplied and divided by this.
UNKNOWN = 0.5
# The largest share of time in operator classes that no validated program has. Above it, the validated errors do not
# apply to a prediction.
ELSEWHERE = 0.1
# Bytes of gradients that one all-reduce sums.
BUCKET = 25 * 2**20
BOUNDS = ("compute", "memory", "launch", "link")


@dataclass(frozen=True)
class TimeBreakdown:
    """The engines' seconds for a group of calls, in total and for each bound: compute, memory, launch or link."""

    name: str
    calls: int
    seconds: float
    bounds: dict[str, float]

    @property
    def bound(self) -> str:
        """Returns the bound of most of the time."""
        return max(self.bounds, key=lambda name: self.bounds[name], default="nothing")


@dataclass(frozen=True)
class Prediction:
    """A prediction of one step on a chip, in seconds and bytes."""

    chip: Description
    program: Program
    seconds: float
    host_seconds: float
    device_seconds: float
    costs: tuple[Cost, ...]
    dtype: str
    validation: Validation | None
    not_validated: str = ""  # why the errors of validated programs do not apply

    @property
    def mode(self) -> str:
        """Returns "training" if the program has a backward pass, else "inference"."""
        return "training" if self.program.is_training else "inference"

    @property
    def range(self) -> tuple[float, float]:
        """Returns the lower and upper end of the predicted time.

        With validation, the measured times of nine in ten validated programs were within this range. Without it, the
        range is from half to twice the time.
        """
        if self.validation is None:
            return self.seconds * UNKNOWN, self.seconds / UNKNOWN
        error = self.validation.percentile_90
        return self.seconds / (1 + error), self.seconds * (1 + error)

    @property
    def fits(self) -> bool:
        """Returns True if the peak of memory is at most the chip's memory."""
        return self.program.peak <= self.chip.memory_size.value

    @property
    def bound(self) -> str:
        """Returns "launch" if the host is slower than the device, else the bound of most of the device's time."""
        if self.host_seconds > self.device_seconds:
            return "launch"
        return self.part("step", list(range(len(self.costs)))).bound

    def error_text(self) -> str:
        """Returns a sentence with the validated error, or with the reason why there is none."""
        found = self.validation
        if found is None:
            reason = f": {self.not_validated}" if self.not_validated else ""
            return f"not validated for {self.mode} in {self.dtype} on {self.chip.name}{reason}"
        return (
            f"validated error: mean {found.mean:.1%}, 90th percentile {found.percentile_90:.1%}, "
            f"worst {found.worst:.1%} ({found.count} programs, {found.mode}, {found.dtype}; {found.note})"
        )

    def notes(self) -> list[str]:
        """Returns notes for the report: operators without a rule, dtypes without a rate, and too little memory."""
        notes = list(self.program.notes)
        unknown = Counter(self.program.without_rule())
        if unknown:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(unknown.items()))
            notes.append(
                f"no rule for: {names}. Counted by the bytes of their operands, as elementwise operators; "
                "add them to operator_classes.py"
            )
        wider = sorted(
            {
                (call.work.dtype, cost.rate_of)
                for call, cost in zip(self.program.calls, self.costs, strict=True)
                if cost.rate_of and call.work.unit == "matrix"
            }
        )
        for dtype, taken in wider:
            notes.append(f"{self.chip.name} has no rate for {dtype}: the rate of {taken} was taken")
        if not self.fits:
            notes.append(
                f"does not fit: the peak is {self.program.peak / 2**30:.2f} GiB and {self.chip.name} has "
                f"{self.chip.memory_size.value / 2**30:.2f} GiB; use a smaller batch, a narrower dtype, "
                "activation checkpoints, or more devices"
            )
        return notes

    def part(self, name: str, indices: list[int]) -> TimeBreakdown:
        """Returns the sum over the calls at ``indices``."""
        bounds: dict[str, float] = {}
        for index in indices:
            cost = self.costs[index]
            if cost.seconds > 0:
                bounds[cost.bound] = bounds.get(cost.bound, 0.0) + cost.seconds
        return TimeBreakdown(name, len(indices), sum(self.costs[index].seconds for index in indices), bounds)

    def by_operator(self) -> list[TimeBreakdown]:
        """Returns the time of each operator, the longest first."""
        return self._grouped(lambda call: call.name)

    def by_module(self) -> list[TimeBreakdown]:
        """Returns the time of the operators that each module calls itself, without submodules, the longest first."""
        return self._grouped(lambda call: call.module)

    def _grouped(self, key: Callable[[OperatorCall], str]) -> list[TimeBreakdown]:
        groups: dict[str, list[int]] = {}
        for index, call in enumerate(self.program.calls):
            if self.costs[index].seconds > 0:
                groups.setdefault(key(call), []).append(index)
        return sorted((self.part(name, indices) for name, indices in groups.items()), key=lambda part: -part.seconds)


def main_dtype(calls: list[OperatorCall]) -> str:
    """Returns the dtype of most FLOP of matrix products, or if there are none, of most bytes."""
    flops: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for call in calls:
        if call.work.unit == "matrix":
            flops[call.work.dtype] += call.work.flops
        sizes[call.work.dtype] += call.work.size
    return (flops or sizes or Counter({"float32": 1})).most_common(1)[0][0]


def predict(program: Program, chip: Description, in_graph: bool = False, devices: int = 1) -> Prediction:
    """Returns the prediction of one step of a program on a chip. With ``in_graph`` the host launches once.

    With several devices, each of them runs the step. Ring all-reduces over the chip's peer link sum the gradients in
    buckets, concurrently with the backward pass. Predictions in a graph or for several devices are not validated.
    """
    costs = tuple(cost_of(chip, NOTHING if call.is_on_host else call.work, in_graph) for call in program.calls)
    timeline = Timeline()
    buckets = _Buckets(program, chip, costs, devices)
    launched = False
    for call, cost in zip(program.calls, costs, strict=True):
        if call.work.kernels and not call.is_on_host:
            host = 0.0 if in_graph and launched else chip.launch_host.value
            launched = True
            if not call.is_backward:
                buckets.await_all(timeline)
            number = timeline.launch(call.name, 0, cost.seconds, host=host)
            if call.waits:
                timeline.synchronize(number)
            if call.is_backward:
                buckets.after(cost.seconds, timeline)
    found = Prediction(
        chip,
        program,
        timeline.finish(),
        timeline.host,
        sum(cost.seconds for cost in costs),
        costs,
        main_dtype(program.calls),
        None,
    )
    validation = None if in_graph or devices > 1 else chip.validation(found.mode, found.dtype)
    if validation is None:
        return found
    reason = _why_not(found, validation)
    return replace(found, not_validated=reason) if reason else replace(found, validation=validation)


def shares_of_classes(prediction: Prediction) -> dict[str, float]:
    """Returns the share of the engines' time for each class of operators, the largest first."""
    seconds: dict[str, float] = {}
    for call, cost in zip(prediction.program.calls, prediction.costs, strict=True):
        seconds[call.work.kind] = seconds.get(call.work.kind, 0.0) + cost.seconds
    whole = sum(seconds.values()) or 1.0
    return dict(sorted(((kind, own / whole) for kind, own in seconds.items()), key=lambda item: -item[1]))


def _why_not(prediction: Prediction, validation: Validation) -> str:
    """Returns the reason why the errors of the validated programs do not apply, or an empty string if they do."""
    if prediction.host_seconds > prediction.device_seconds:
        return "it is bound by the host's launches, and no validated program was"
    other = {kind: share for kind, share in shares_of_classes(prediction).items() if kind not in validation.classes}
    if sum(other.values()) > ELSEWHERE:
        worst = next(iter(other))
        return f"{other[worst]:.0%} of its time is in operators of the class {worst!r}, which no validated program had"
    return ""


class _Buckets:
    """The all-reduces of data-parallel training. Each sums a bucket after its share of the backward pass is launched.

    Gradients are assumed to become ready evenly over the backward pass.
    """

    def __init__(self, program: Program, chip: Description, costs: tuple[Cost, ...], devices: int) -> None:
        self._count = math.ceil(program.parameters / BUCKET) if devices > 1 else 0
        self._total = sum(cost.seconds for call, cost in zip(program.calls, costs, strict=True) if call.is_backward)
        self._done, self._sent = 0.0, 0
        size = program.parameters / max(1, self._count) * 2 * (devices - 1) / devices
        ring = OperatorWork("copy", size=int(size), link="peer", messages=2 * (devices - 1))
        self._seconds = cost_of(chip, ring).seconds

    def await_all(self, timeline: Timeline) -> None:
        """Makes later tasks of the compute stream wait for the all-reduces, because they need the sums."""
        if self._sent:
            timeline.wait(0, timeline.record(1))

    def after(self, seconds: float, timeline: Timeline) -> None:
        """Launches the all-reduces of the buckets that are full after ``seconds`` more of the backward pass."""
        self._done += seconds
        while self._sent < self._count and self._done * self._count >= (self._sent + 1) * self._total * (1 - 1e-9):
            timeline.wait(1, timeline.record(0))
            timeline.launch("all_reduce", 1, self._seconds, "link")
            self._sent += 1
