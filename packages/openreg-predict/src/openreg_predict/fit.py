# SPDX-License-Identifier: BSD-3-Clause
"""Fits a chip's efficiencies (the reached parts of its peak rates) to measurements of single operators.

Each measurement gives the fraction of a peak that an operator reached. The curve of a class has a point per half decade
of work: the median of its fractions, so that outliers do not count. For matrix products, a few tiles, ramps and
fractions of the bandwidth are tried, and those with the least mean error are used. A second curve, over columns, is
added if it lowers the error.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from openreg_predict.cost import rate_of, utilization
from openreg_predict.description import ALL, Curve, Description, Efficiency
from openreg_predict.work import OperatorWork

# The number of points of a curve per decade of work. PER_OCTAVE is one point per factor of two.
PER_DECADE = 2.0
PER_OCTAVE = 1 / math.log10(2)
# Two curves are fitted alternately _TURNS times. The second one is used if the error is below this share of the error
# without it.
_TURNS = 10
_WORTH_A_CURVE = 0.95
# With _MANY measurements or more, a point of a curve is the median of at least LEAST of them.
LEAST = 3
_MANY = 50
# At most this many measurements select tiles and ramp. All of them make the curve.
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
# Fractions of the bandwidth. The first is used if no measurement is bound by memory.
_MEMORY = (0.8, 0.9, 0.7, 0.6, 0.5, 0.4)
_HIGHEST = 20.0  # the largest fraction that a description may contain


@dataclass(frozen=True)
class Sample:
    """A measured call. ``seconds`` is its time."""

    work: OperatorWork
    seconds: float
    is_arithmetic: bool = False  # True for an elementwise operator that arithmetic bounds


def curve(
    points: Sequence[tuple[float, float]], source: str, note: str, per_decade: float = PER_DECADE
) -> Curve | None:
    """Returns a curve of the median fraction at ``per_decade`` points per decade of work.

    ``points`` are (work, fraction). Returns None if no median has enough of them.
    """
    bins: dict[int, list[tuple[float, float]]] = {}
    for work, fraction in points:
        bins.setdefault(round(per_decade * math.log10(max(work, 1.0))), []).append((work, fraction))
    found = []
    least = LEAST if len(points) >= _MANY else 1
    for number, members in sorted(bins.items()):
        if len(members) >= least:
            fraction = min(_HIGHEST, statistics.median(fraction for _, fraction in members))
            found.append((float(f"{10 ** (number / per_decade):.3g}"), float(f"{fraction:.3g}")))
    return Curve(tuple(found), source, note) if found else None


def fit_memory(chip: Description, samples: Sequence[Sample], source: str, note: str) -> Efficiency | None:
    """Fits the efficiency of a class that memory bounds. Samples with ``is_arithmetic`` fit its arithmetic rate.

    Returns None if there are not enough samples.
    """
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
    """Fits the efficiency of a class of matrix products. Returns None if there are not enough samples.

    The curve over FLOP is the fraction that tiles, ramp, bandwidth and columns do not explain.
    """
    if not samples:
        return None
    chosen = list(samples)
    if len(chosen) > _CHOOSE:
        chosen = random.Random(0).sample(chosen, _CHOOSE)
    shapes = [(tiles, ramp) for tiles in (_TILES if chip.parallel_units > 1 else _TILES[:1]) for ramp in _RAMPS]
    tried = [_Products(chip, chosen, tiles, ramp, memory, False) for tiles, ramp in shapes for memory in _MEMORY]
    tried = [item for item in tried if item.compute is not None]
    if not tried:
        return None
    best = min(tried, key=lambda item: item.error)
    wide = [_Products(chip, chosen, tiles, ramp, best.memory, True) for tiles, ramp in shapes]
    widest = min((item for item in wide if item.compute is not None), key=lambda item: item.error, default=best)
    if widest.error < best.error * _WORTH_A_CURVE:
        best = widest
    final = _Products(chip, samples, best.tiles, best.ramp, best.memory, best.columns is not ALL)
    if final.compute is None:
        return None
    compute = replace(final.compute, source=source, note=f"{note}; mean error of these {final.error:.1%}")
    columns = final.columns if final.columns is ALL else replace(final.columns, source=source)
    return Efficiency(compute, Curve(((1.0, best.memory),), source, note), best.tiles, best.ramp, columns)


class _Products:
    """A choice of tiles, ramp and fraction of the bandwidth, with the fitted curves and their mean error."""

    def __init__(
        self,
        chip: Description,
        samples: Sequence[Sample],
        tiles: tuple[tuple[int, int], ...],
        ramp: int,
        memory: float,
        over_columns: bool,
    ) -> None:
        self.tiles, self.ramp, self.memory = tiles, ramp, memory
        self.compute: Curve | None = None
        self.columns = ALL
        self.error = math.inf
        ideal = [_seconds_at_the_peak(chip, sample.work, tiles, ramp) for sample in samples]
        moving = [sample.work.size / (chip.memory_bandwidth.value * memory) for sample in samples]
        launch = chip.launch_device.value
        points = []  # (FLOP, columns, fraction of the peak) of the samples that arithmetic bounds
        for sample, seconds, least in zip(samples, ideal, moving, strict=True):
            net = sample.seconds - sample.work.kernels * launch
            if net > least:
                points.append((float(sample.work.flops), float(_columns(sample.work)), seconds / net))
        self._fit(points, over_columns)
        if self.compute is not None:
            errors = []
            for sample, seconds, least in zip(samples, ideal, moving, strict=True):
                reached = self.compute.at(sample.work.flops) * self.columns.at(_columns(sample.work))
                predicted = max(seconds / reached, least) + sample.work.kernels * launch
                errors.append(abs(predicted / sample.seconds - 1))
            self.error = statistics.fmean(errors)

    def _fit(self, points: Sequence[tuple[float, float, float]], over_columns: bool) -> None:
        """Fits the curve over FLOP, and with ``over_columns`` alternately a second one to the rest that each leaves."""
        for _ in range(_TURNS if over_columns else 1):
            rest = [(flops, fraction / self.columns.at(wide)) for flops, wide, fraction in points]
            self.compute = curve(rest, "measured", "")
            if self.compute is None or not over_columns:
                return
            rest = [(wide, fraction / self.compute.at(flops)) for flops, wide, fraction in points]
            found = curve(rest, "measured", "", PER_OCTAVE)
            if found is None:
                return
            middle = statistics.median(found.at(wide) for _, wide, _ in points)
            scaled = tuple((wide, float(f"{min(_HIGHEST, share / middle):.3g}")) for wide, share in found.points)
            self.columns = replace(found, points=scaled)


def _columns(work: OperatorWork) -> int:
    assert work.product is not None
    return max(1, work.product[2])


def _seconds_at_the_peak(chip: Description, work: OperatorWork, tiles: tuple[tuple[int, int], ...], ramp: int) -> float:
    assert work.product is not None
    rate = rate_of(chip, work.unit, work.dtype)[0]
    depth = work.product[3]
    return work.flops / (rate * utilization(work.product, tiles, chip.parallel_units) * depth / (depth + ramp))


def fit(chip: Description, samples: Sequence[Sample], source: str, note: str) -> dict[str, Efficiency]:
    """Returns the efficiency of each class that was measured often enough."""
    found: dict[str, Efficiency] = {}
    for kind in dict.fromkeys(sample.work.kind for sample in samples):
        own = [sample for sample in samples if sample.work.kind == kind]
        fitter: Callable[..., Efficiency | None] = fit_products if own[0].work.product else fit_memory
        efficiency = fitter(chip, own, source, f"{note}, {len(own)} of them")
        if efficiency is not None:
            found[kind] = efficiency
    return found


def with_reference_efficiencies(found: dict[str, Efficiency], lender: Description) -> dict[str, Efficiency]:
    """Returns ``found`` with those of another chip, marked as assumed, for the classes that were not measured."""
    return {**lender.lent(), **found}
