# SPDX-License-Identifier: BSD-3-Clause
"""Compares predictions with measurements of models that were not part of the calibration, by prediction method."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from openreg_predict.description import Curve, Description, Efficiency, Validation, load
from openreg_predict.predict import Prediction, predict, shares_of_classes
from openreg_predict.published import models
from openreg_predict.published.data import MeasuredCase, cases, split
from openreg_predict.trace import Program, trace

# The methods of prediction that are compared. They differ in the efficiencies (the reached parts of the chip's peak
# rates) that the description has: those fitted to the chip's measurements, those of another chip, assumed ones, and the
# peaks themselves.
PREDICTION_METHODS = ("calibrated", "other chip", "data sheet", "plain roofline")
# The beginning of the names of further methods, one for each other chip whose efficiencies are used.
LENDER = "efficiencies of "
# The efficiency of a description without measurements.
_ASSUMED = Curve(((1.0, 0.8),), "assumed", "what libraries usually reach")


@dataclass(frozen=True)
class ValidationResult:
    """A measured case with its prediction in seconds. ``method`` is the prediction method."""

    case: MeasuredCase
    method: str
    predicted: float
    classes: tuple[str, ...] = ()  # the operator classes with at least a hundredth of the time

    @property
    def error(self) -> float:
        """Returns the error relative to the measurement, which is positive if the prediction is longer."""
        return self.predicted / self.case.seconds - 1


@dataclass(frozen=True)
class Summary:
    """Statistics of the relative errors of a set of predictions."""

    device: str
    mode: str  # training or inference
    method: str  # of prediction: one of PREDICTION_METHODS, or LENDER with a chip's name
    count: int
    mean: float
    median: float
    percentile_90: float
    worst: float


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that at least ``share`` of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def summarize(device: str, mode: str, method: str, errors: Sequence[float]) -> Summary:
    """Returns the statistics of the absolute values of ``errors``."""
    sizes = [abs(error) for error in errors]
    return Summary(
        device,
        mode,
        method,
        len(sizes),
        statistics.fmean(sizes),
        statistics.median(sizes),
        percentile(sizes, 0.9),
        max(sizes),
    )


def from_data_sheet(chip: Description) -> Description:
    """Returns the chip with assumed efficiencies, as if nothing had been measured."""
    efficiency = {
        "matmul": Efficiency(_ASSUMED, _ASSUMED, ((128, 128),)),
        "elementwise": Efficiency(memory=_ASSUMED),
    }
    return replace(chip, efficiencies=efficiency, validations=())


def chips(name: str) -> dict[str, Description]:
    """Returns the description of a chip for each prediction method."""
    chip = load(name)
    found = {"calibrated": chip, "data sheet": from_data_sheet(chip), "plain roofline": chip.plain()}
    table = split()
    for other in sorted(set(table["devices"].values()) - {name}):
        lent = chip.with_efficiencies_of(load(other))
        found[LENDER + other] = lent
        if other == table["other"].get(name):
            found["other chip"] = lent
    return found


def compare(data: Path) -> tuple[list[ValidationResult], dict[str, str]]:
    """Compares all predictions with the measurements in the folder ``data``, a copy of the published ones.

    Records each model once, on ``meta``. Also returns the files that were left out, with the reasons. Raises DataError
    if the copy is wrong.
    """
    found, left_out = cases(data)
    programs: dict[tuple[str, str, int, int], Program] = {}
    seen = {name: chips(name) for name in {case.device for case in found}}
    results = []
    for case in found:
        key = (case.model, case.mode, case.length, case.batch)
        if key not in programs:
            step = models.step(case.model, case.mode == "training", case.length, case.batch)
            programs[key] = trace(step, warm_up=0)
        for method, chip in seen[case.device].items():
            results.append(compare_to_measurement(case, method, predict(programs[key], chip)))
    return results, left_out


def compare_to_measurement(case: MeasuredCase, method: str, prediction: Prediction) -> ValidationResult:
    """Returns the comparison of a prediction with the measurement of its case."""
    shares = shares_of_classes(prediction)
    return ValidationResult(
        case, method, prediction.seconds, tuple(kind for kind, share in shares.items() if share >= 0.01)
    )


def summaries(results: Iterable[ValidationResult]) -> list[Summary]:
    """Returns a summary for each device, mode and prediction method, and for all devices together."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        for device in (result.case.device, "all"):
            groups.setdefault((device, result.case.mode, result.method), []).append(result.error)
    positions = {method: number for number, method in enumerate(PREDICTION_METHODS)}
    ordered = sorted(
        groups.items(),
        key=lambda item: (item[0][0] == "all", *item[0][:2], positions.get(item[0][2], len(positions)), item[0][2]),
    )
    return [summarize(*key, errors) for key, errors in ordered]


def validations(
    found: Iterable[Summary], results: Iterable[ValidationResult], device: str, note: str
) -> list[Validation]:
    """Returns the entries of a device's description for the errors of the calibrated predictions."""
    own = [result for result in results if result.case.device == device and result.method == "calibrated"]
    return [
        Validation(
            item.mode,
            "float32",
            item.count,
            item.mean,
            item.percentile_90,
            item.worst,
            note,
            tuple(sorted({kind for result in own if result.case.mode == item.mode for kind in result.classes})),
        )
        for item in found
        if item.device == device and item.method == "calibrated"
    ]


def as_document(results: Iterable[ValidationResult], left_out: dict[str, str]) -> dict[str, Any]:
    """Returns the results and their summaries as a document for JSON."""
    results = list(results)
    return {
        "summaries": [asdict(item) for item in summaries(results)],
        "cases": [
            {**asdict(item.case), "method": item.method, "predicted": item.predicted, "error": item.error}
            for item in results
        ],
        "left_out": left_out,
    }
