# SPDX-License-Identifier: BSD-3-Clause
"""Defines the performance targets, and compares results with them. No command fails because of a missed target."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import collectives
import import_time
from curves import CURVES, WITHIN
from names import ITEM, MODELS, SMALL
from results import Families, Family, amount, flat, ratio

WIDE = ("add", "gelu", "sum of all", "sum of rows", "softmax", "layer norm")
WAYS = (
    *("to the device, pageable", "to the device, pinned", "to the host, pageable", "to the host, pinned"),
    *("on the device", "to another device"),
)
PARALLEL = "add 128 K elements"
DISTURBED = (f"{PARALLEL} after CPU work", f"{PARALLEL} after a second device")
ADDED_IMPORT = "loading the backend after import torch"


@dataclass(frozen=True)
class Measured:
    """The number to compare with the limit, and the workload that determines it, if it is one of several."""

    value: float
    decided_by: str = ""


Reduction = Callable[[Family, tuple[str, ...]], Measured]


def worst(values: dict[str, float]) -> Measured:
    """Returns the greatest of the values."""
    name = max(values, key=lambda item: values[item])
    return Measured(values[name], name if len(values) > 1 else "")


def worst_ratio(times: Family, names: tuple[str, ...]) -> Measured:
    """Returns the greatest openreg / CPU, so that each of the workloads has to meet the limit."""
    return worst({name: ratio(times[name]) for name in names})


def mean_ratio(times: Family, names: tuple[str, ...]) -> Measured:
    """Returns the geometric mean of openreg / CPU."""
    return Measured(math.exp(statistics.fmean(math.log(ratio(times[name])) for name in names)))


def longest(times: Family, names: tuple[str, ...]) -> Measured:
    """Returns the longest time on openreg, in seconds."""
    return worst({name: statistics.median(times[name]["openreg"]) for name in names})


def against(base: str) -> Reduction:
    """Returns a reduction to the greatest time on openreg, divided by the time of the workload `base` on openreg."""

    def growth(times: Family, names: tuple[str, ...]) -> Measured:
        before = statistics.median(times[base]["openreg"])
        return worst({name: statistics.median(times[name]["openreg"]) / before for name in names})

    return growth


def exposed(times: Family, names: tuple[str, ...]) -> Measured:
    """Returns the share of the communication's time that computation does not hide, on openreg.

    `names` are the workloads of both together, of communication alone, and of computation alone.
    """
    both, communication, computation = (statistics.median(times[name]["openreg"]) for name in names)
    return Measured((both - computation) / communication)


def eager(name: str) -> str:
    """Returns the name of the eager workload that corresponds to a compiled one."""
    return f"{name.partition(', compiled')[0]}, eager"


def mean_to_eager(times: Family, names: tuple[str, ...]) -> Measured:
    """Returns the geometric mean of compiled over eager, on openreg."""
    return Measured(math.exp(statistics.fmean(math.log(to_eager(times, name, "openreg")) for name in names)))


def worst_to_eager_on_cpu(times: Family, names: tuple[str, ...]) -> Measured:
    """Returns the greatest quotient of compiled / eager on openreg and compiled / eager on the CPU."""
    return worst({name: to_eager(times, name, "openreg") / to_eager(times, name, "cpu") for name in names})


def to_eager(times: Family, name: str, device: str) -> float:
    """Returns the time of a compiled workload divided by that of the eager one."""
    return statistics.median(times[name][device]) / statistics.median(times[eager(name)][device])


@dataclass(frozen=True)
class Target:
    """A performance target: the number that `reduce` computes from the workloads should be at most `limit`.

    `base` is the workload of openreg with which the others are compared; empty if they are not compared with one.
    """

    text: str
    workloads: tuple[str, ...]
    reduce: Reduction
    limit: float
    base: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Returns all workloads whose times the target uses."""
        compared = [eager(name) for name in self.workloads if self.reduce in (mean_to_eager, worst_to_eager_on_cpu)]
        return (*self.workloads, *compared, *([self.base] if self.base else []))

    @property
    def is_ratio_to_cpu(self) -> bool:
        """Returns True if the target compares openreg with the CPU."""
        return self.reduce in (worst_ratio, mean_ratio, worst_to_eager_on_cpu)

    def shown(self, value: float) -> str:
        """Returns a number of this target as text."""
        if self.reduce is longest:
            return amount(value)
        return f"{value:.2f}" + (" of base" if self.base else "")


POINTWISE = "19 elementwise operators on 1 M, compiled"
FIFTY = "50 small operators, compiled"
TINY = "train tiny MLP, compiled, whole step as a graph"
COMPILED = tuple(f"train {model}, compiled" for model in MODELS)

COMPILE_TIMES = {kind: tuple(f"compile {model}, {kind}" for model in MODELS) for kind in ("cold", "from the cache")}


def growing(text: str, base: str, workloads: tuple[str, ...]) -> Target:
    """Returns a target that compares workloads of openreg with another workload of openreg."""
    return Target(text, workloads, against(base), WITHIN, base)


TARGETS = (
    Target(
        "allocate and free 1 KiB and 16 MiB",
        ("allocate and free 1 KiB", "allocate and free 16 MiB"),
        *(worst_ratio, 1.0),
    ),
    Target("30 operators on 4 elements, geometric mean", SMALL, mean_ratio, 1.2),
    Target("each of these operators", SMALL, worst_ratio, 1.5),
    Target("item() of a complete number", (ITEM,), worst_ratio, 1.5),
    Target("small operator, host time until return", (f"{SMALL[0]}, until return",), worst_ratio, 1.5),
    growing("small parallel kernel after CPU work, or after a second device was used", PARALLEL, DISTURBED),
    Target(
        "elementwise, reductions, softmax, norms, large",
        tuple(f"{operation}, large" for operation in WIDE),
        *(worst_ratio, 1.0),
    ),
    Target("matmul, convolution, large", ("matmul, large", "convolution, large"), worst_ratio, 1.0),
    Target("copies, 64 MiB", tuple(f"copy 64 MiB {way}" for way in WAYS), worst_ratio, 1.0),
    Target("item() after a kernel", ("item() after a kernel",), longest, 8e-6),
    Target("training step, SGD, geometric mean", tuple(f"train {model}, SGD" for model in MODELS), mean_ratio, 1.0),
    Target("training step, AdamW, geometric mean", tuple(f"train {model}, AdamW" for model in MODELS), mean_ratio, 1.0),
    Target(
        "training step by graph replay, geometric mean",
        tuple(f"train {model}, graph replay" for model in MODELS),
        *(mean_ratio, 0.75),
    ),
    Target(
        "inference and generation, geometric mean",
        (*(f"inference {model}" for model in MODELS), "generate 16 tokens"),
        *(mean_ratio, 1.0),
    ),
    Target(
        "training with host work between steps, geometric mean",
        tuple(f"train {model}, host work between steps" for model in MODELS),
        *(mean_ratio, 1.1),
    ),
    Target("19 elementwise operators, compiled, to eager", (POINTWISE,), mean_to_eager, 0.25),
    Target("19 elementwise operators, compiled", (POINTWISE,), worst_ratio, 1.2),
    Target("50 small operators, compiled", (FIFTY,), longest, 60e-6),
    Target("50 small operators, compiled, as a graph", (f"{FIFTY}, as a graph",), longest, 8e-6),
    Target("training step, compiled, to eager, geometric mean", COMPILED, mean_to_eager, 1.05),
    Target("the same, each model, over what it is on the CPU", COMPILED, worst_to_eager_on_cpu, 1.1),
    Target(
        "whole training step as a graph, to the CPU's eager step, geometric mean",
        tuple(f"{name}, whole step as a graph" for name in COMPILED),
        *(mean_ratio, 0.7),
    ),
    Target("tiny training step as a graph, to eager", (TINY,), mean_to_eager, 0.2),
    *(
        Target(f"compile time of the five models, {kind}", workloads, mean_ratio, 1.1)
        for kind, workloads in COMPILE_TIMES.items()
    ),
    Target("all_reduce of 4 KiB, several in flight", collectives.SUMS[:1], worst_ratio, 1.3),
    Target("all_reduce of 1 MiB and 16 MiB, several in flight", collectives.SUMS[1:], worst_ratio, 1.05),
    Target("a collective, host time until return", (collectives.CALL,), longest, 30e-6),
    Target("a step of DistributedDataParallel, two processes", (collectives.STEP,), worst_ratio, 1.0),
    Target(
        "share of communication over a link that computation does not hide",
        (collectives.BOTH_LINKED, *collectives.APART_LINKED),
        *(exposed, 0.2),
    ),
    Target("a missing rank is reported, beyond the timeout", (collectives.REPORT,), longest, 0.5),
    Target("added import time", (ADDED_IMPORT,), longest, import_time.LIMIT * 1e-3),
    *(
        growing(f"time per launch, {curve.counts[0]} to {curve.counts[-1]} {curve.what}", curve.base, curve.others)
        for curve in CURVES
    ),
)


@dataclass(frozen=True)
class TargetResult:
    """The number that was measured for a target; None if a workload that it needs was not measured."""

    target: Target
    measured: Measured | None

    @property
    def met(self) -> bool | None:
        """Returns True if the limit is kept; None if nothing was measured."""
        return None if self.measured is None else self.measured.value <= self.target.limit


def judge(families: Families, targets: tuple[Target, ...] = TARGETS) -> list[TargetResult]:
    """Returns the result of each target."""
    times = flat(families)
    return [TargetResult(target, measured(target, times)) for target in targets]


def measured(target: Target, times: Family) -> Measured | None:
    """Returns the target's number; None unless all its workloads were measured, because a part has another mean."""
    devices = ("openreg", "cpu") if target.is_ratio_to_cpu else ("openreg",)
    if not all(times.get(name, {}).get(device) for name in target.needs for device in devices):
        return None
    return target.reduce(times, target.workloads)


def show(target_results: list[TargetResult]) -> None:
    """Prints each measured target with its limit, its number, and whether it is met."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="targets: medians of openreg / medians of the CPU, unless they have a unit or a base")
    for title in ("target", "at most", "measured", "met"):
        table.add_column(title, justify="left" if title == "target" else "right")
    judged = [result for result in target_results if result.measured is not None]
    for result in judged:
        target, found = result.target, result.measured
        text = target.text + (f"\n  most: {found.decided_by}" if found.decided_by else "")
        answer = "[green]yes[/]" if result.met else "[bold red]NO[/]"
        table.add_row(text, target.shown(target.limit), target.shown(found.value), answer)
    console = Console(width=120)
    if judged:
        console.print(table)
    met = sum(result.met is True for result in judged)
    missing = len(target_results) - len(judged)
    console.print(f"{met} of {len(judged)} measured targets are met; {missing} were not measured")
