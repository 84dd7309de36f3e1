# SPDX-License-Identifier: BSD-3-Clause
"""Efficiencies from measurements of single operators: medians along the amount of work, so that outliers do not count.

A measurement says what fraction of a peak was reached. The curve of a class has a point per half a decade of work, the
median of those fractions. Of matrix products, tiles, ramp and the fraction of the bandwidth are tried out of a few, and
those with the least mean error win.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from openreg_predict.cost import rate_of, utilisation
from openreg_predict.description import ALL, Curve, Description, Efficiency
from openreg_predict.work import Work

# A point of a curve is a median of at least so many measurements, where there are many.
LEAST = 3
_MANY = 50
# So many measurements choose tiles; all of them make the curve.
_CHOOSE = 500
_TILES: tuple[tuple[tuple[int, int], ...], ...] = (
    (),
    ((64, 64),),
    ((128, 64), (64, 128)),
    ((128, 128),),
    ((128, 128), (128, 64), (64, 128)),
    ((128, 128), (128, 64), (64, 128), (64, 64)),
    ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64)),
    ((128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32)),
)
_RAMPS = (0, 4, 8, 16, 32, 64)
# The first wins where none of the measurements is bound by memory.
_MEMORY = (0.8, 0.9, 0.7, 0.6, 0.5, 0.4)
_HIGHEST = 20.0  # what a description may say


@dataclass(frozen=True)
class Sample:
    """A call that was measured, in seconds."""

    work: Work
    seconds: float
    is_arithmetic: bool = False  # of an elementwise operator that is bound by its arithmetic


def curve(points: Sequence[tuple[float, float]], source: str, note: str) -> Curve | None:
    """Medians of (work, fraction) by half a decade of the work; None where none has enough."""
    decades: dict[int, list[tuple[float, float]]] = {}
    for work, fraction in points:
        decades.setdefault(round(2 * math.log10(max(work, 1.0))), []).append((work, fraction))
    found = []
    least = LEAST if len(points) >= _MANY else 1
    for decade, members in sorted(decades.items()):
        if len(members) >= least:
            fraction = min(_HIGHEST, statistics.median(fraction for _, fraction in members))
            found.append((float(f"{10 ** (decade / 2):.3g}"), float(f"{fraction:.3g}")))
    return Curve(tuple(found), source, note) if found else None


def fit_memory(chip: Description, samples: Sequence[Sample], source: str, note: str) -> Efficiency | None:
    """Of a class that moves bytes; samples with much arithmetic tell the rate that it computes at."""
    moving: list[tuple[float, float]] = []
    computing: list[tuple[float, float]] = []
    rate = rate_of(chip, "vector", "float32")[0]
    for sample in samples:
        work, seconds = sample.work, sample.seconds - sample.work.kernels * chip.launch_device.value
        if seconds <= 0:
            continue
        if sample.is_arithmetic:
            computing.append((float(work.flops), work.flops / rate / seconds))
        else:
            moving.append((float(work.size), work.size / chip.memory_bandwidth.value / seconds))
    found, arithmetic = curve(moving, source, note), curve(computing, source, note)
    return Efficiency(arithmetic or ALL, found) if found else None


def fit_products(chip: Description, samples: Sequence[Sample], source: str, note: str) -> Efficiency | None:
    """Of a class of matrix products."""
    if not samples:
        return None
    chosen = list(samples)
    if len(chosen) > _CHOOSE:
        chosen = random.Random(0).sample(chosen, _CHOOSE)
    best: tuple[float, tuple[tuple[int, int], ...], int, float] | None = None
    for tiles, ramp in itertools.product(_TILES if chip.parallel_units > 1 else _TILES[:1], _RAMPS):
        ideal = [_seconds_at_the_peak(chip, sample.work, tiles, ramp) for sample in chosen]
        for memory in _MEMORY:
            error = _error(chip, chosen, ideal, memory)
            if error is not None and (best is None or error < best[0]):
                best = (error, tiles, ramp, memory)
    if best is None:
        return None
    error, tiles, ramp, memory = best
    ideal = [_seconds_at_the_peak(chip, sample.work, tiles, ramp) for sample in samples]
    compute = _compute_curve(chip, samples, ideal, memory, source, f"{note}; mean error of these {error:.1%}")
    if compute is None:
        return None
    return Efficiency(compute, Curve(((1.0, memory),), source, note), tiles, ramp)


def _seconds_at_the_peak(chip: Description, work: Work, tiles: tuple[tuple[int, int], ...], ramp: int) -> float:
    assert work.product is not None
    rate = rate_of(chip, work.unit, work.dtype)[0]
    depth = work.product[3]
    return work.flops / (rate * utilisation(work.product, tiles, chip.parallel_units) * depth / (depth + ramp))


def _net(chip: Description, sample: Sample, memory: float) -> tuple[float, float]:
    """(seconds without the launch, seconds that memory alone would take)."""
    net = sample.seconds - sample.work.kernels * chip.launch_device.value
    return net, sample.work.size / (chip.memory_bandwidth.value * memory)


def _compute_curve(
    chip: Description, samples: Sequence[Sample], ideal: Sequence[float], memory: float, source: str, note: str
) -> Curve | None:
    points = []
    for sample, seconds in zip(samples, ideal, strict=True):
        net, moving = _net(chip, sample, memory)
        if net > moving:  # bound by arithmetic
            points.append((float(sample.work.flops), seconds / net))
    return curve(points, source, note)


def _error(chip: Description, samples: Sequence[Sample], ideal: Sequence[float], memory: float) -> float | None:
    found = _compute_curve(chip, samples, ideal, memory, "measured", "")
    if found is None:
        return None
    launch = chip.launch_device.value
    errors = []
    for sample, seconds in zip(samples, ideal, strict=True):
        _, moving = _net(chip, sample, memory)
        predicted = max(seconds / found.at(sample.work.flops), moving) + launch
        errors.append(abs(predicted / sample.seconds - 1))
    return statistics.fmean(errors)


def fit(chip: Description, samples: Sequence[Sample], source: str, note: str) -> dict[str, Efficiency]:
    """The efficiencies of all classes that were measured."""
    found: dict[str, Efficiency] = {}
    for kind in dict.fromkeys(sample.work.kind for sample in samples):
        own = [sample for sample in samples if sample.work.kind == kind]
        fitter: Callable[..., Efficiency | None] = fit_products if own[0].work.product else fit_memory
        efficiency = fitter(chip, own, source, f"{note}, {len(own)} of them")
        if efficiency is not None:
            found[kind] = efficiency
    return found


def with_borrowed(found: dict[str, Efficiency], lender: Description) -> dict[str, Efficiency]:
    """Those of another chip for classes that were not measured, and said to be assumed."""
    borrowed = {}
    for kind, efficiency in lender.efficiencies.items():
        if kind not in found:
            note = f"that of {lender.name}"
            compute, memory = (
                item if item is ALL else Curve(item.points, "assumed", note)
                for item in (efficiency.compute, efficiency.memory)
            )
            borrowed[kind] = Efficiency(compute, memory, efficiency.tiles, efficiency.ramp)
    return {**found, **borrowed}
