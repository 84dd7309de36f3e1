# SPDX-License-Identifier: BSD-3-Clause
"""Reports predictions: as tables in the terminal, as JSON documents, and as pictures of the roofline.

The mode of a program is training or inference. The efficiencies of a chip are the reached parts of its peak rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from openreg_predict.cost import rate_of
from openreg_predict.predict import Prediction, TimeBreakdown
from openreg_predict.units import show_bytes, show_time
from openreg_predict.validate import LENDER, PREDICTION_METHODS, Summary, ValidationResult

# The most rows of a breakdown; one more row sums the rest.
ROWS = 12


class RooflineError(ValueError):
    """An error of a roofline that cannot be drawn. The message names a workaround."""


def show(prediction: Prediction, console: Console | None = None) -> None:
    """Prints a prediction: its time, memory, error and notes, and the breakdowns by operator and module."""
    console = console or Console()
    chip, program = prediction.chip, prediction.program
    low, high = prediction.range
    _print_line(console, f"{chip.title}: {prediction.mode}, {prediction.dtype}")
    _print_line(
        console,
        f"one step {show_time(prediction.seconds)} (from {show_time(low)} to {show_time(high)}), bound by "
        f"{prediction.bound}; device {show_time(prediction.device_seconds)}, host {show_time(prediction.host_seconds)}",
    )
    _print_line(
        console,
        f"peak memory {show_bytes(program.peak)} of {show_bytes(chip.memory_size.value)}: "
        f"{'fits' if prediction.fits else 'does not fit'}",
    )
    _print_line(console, prediction.error_text())
    for note in prediction.notes():
        _print_line(console, f"note: {note}")
    for title, parts in (("operator", prediction.by_operator()), ("module", prediction.by_module())):
        console.print(_breakdown(title, parts, prediction.device_seconds), markup=False)


def _print_line(console: Console, text: str) -> None:
    """Prints a line as it is: a title or name of the user's with brackets, such as "Chip [rev b]", is no markup."""
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def _breakdown(title: str, parts: Sequence[TimeBreakdown], total: float) -> Table:
    table = Table(title, "calls", "time", "share", "bound by")
    for part in parts[:ROWS]:
        table.add_row(part.name, str(part.calls), show_time(part.seconds), f"{part.seconds / total:.1%}", part.bound)
    if len(parts) > ROWS:
        rest = sum(part.seconds for part in parts[ROWS:])
        calls = sum(part.calls for part in parts[ROWS:])
        table.add_row(f"{len(parts) - ROWS} more", str(calls), show_time(rest), f"{rest / total:.1%}", "")
    return table


def show_comparison(predictions: Sequence[tuple[str, Prediction]], console: Console | None = None) -> None:
    """Prints a table of named predictions. The column "speed" is relative to the first prediction."""
    table = Table("what", "step", "speed", "bound by", "peak memory", "fits", "error")
    table.columns[0].no_wrap = True
    first = predictions[0][1].seconds
    for name, item in predictions:
        error = item.validation
        table.add_row(
            name,
            show_time(item.seconds),
            f"{first / item.seconds:.2f}" if item.seconds else "",
            item.bound,
            show_bytes(item.program.peak),
            "yes" if item.fits else "no",
            f"mean {error.mean:.1%}" if error else "not validated",
        )
    (console or Console()).print(table, markup=False)


def as_document(prediction: Prediction) -> dict[str, Any]:
    """Returns a prediction as a document for JSON, in seconds and bytes."""
    low, high = prediction.range
    found = prediction.validation
    return {
        "device": prediction.chip.name,
        "mode": prediction.mode,
        "dtype": prediction.dtype,
        "seconds": prediction.seconds,
        "range": [low, high],
        "device_seconds": prediction.device_seconds,
        "host_seconds": prediction.host_seconds,
        "bound": prediction.bound,
        "peak_bytes": prediction.program.peak,
        "memory_bytes": prediction.chip.memory_size.value,
        "fits": prediction.fits,
        "validated": None if found is None else vars(found),
        "error": prediction.error_text(),
        "notes": prediction.notes(),
        "operators": [_part(part) for part in prediction.by_operator()],
        "modules": [_part(part) for part in prediction.by_module()],
    }


def _part(part: TimeBreakdown) -> dict[str, Any]:
    return {**vars(part), "bound": part.bound}


def show_validation(
    summaries: Sequence[Summary], results: Sequence[ValidationResult], left_out: dict[str, str]
) -> None:
    """Prints the errors by device, mode and prediction method, those of each model, and the files left out."""
    console = Console()
    table = Table("device", "mode", "efficiencies", "models", "mean", "median", "90 %", "worst")
    for item in (item for item in summaries if item.method in PREDICTION_METHODS):
        errors = (f"{value:.1%}" for value in (item.mean, item.median, item.percentile_90, item.worst))
        table.add_row(item.device, item.mode, item.method, str(item.count), *errors)
    console.print(table, markup=False)
    _show_lenders(summaries, console)
    table = Table("device", "mode", "model", "measured", "predicted", "error")
    for result in results:
        if result.method == "calibrated":
            case = result.case
            times = show_time(case.seconds), show_time(result.predicted)
            table.add_row(case.device, case.mode, case.name, *times, f"{result.error:+.1%}")
    console.print(table, markup=False)
    console.print("float32; other dtypes are not validated")
    reasons: dict[str, int] = {}
    for reason in left_out.values():
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        _print_line(console, f"left out: {count}, {reason}")


def _show_lenders(summaries: Sequence[Summary], console: Console) -> None:
    """Prints the mean errors of each chip with the efficiencies of each other chip."""
    lent = [item for item in summaries if item.method.startswith(LENDER) and item.device != "all"]
    if not lent:
        return
    sets = sorted({(item.device, item.mode) for item in lent})
    table = Table("efficiencies of", *(f"{device}\n{mode}" for device, mode in sets), title="Mean errors")
    for method in sorted({item.method for item in lent}):
        own = {(item.device, item.mode): f"{item.mean:.1%}" for item in lent if item.method == method}
        table.add_row(method.removeprefix(LENDER), *(own.get(place, "") for place in sets))
    console.print(table, markup=False)


def draw_roofline(prediction: Prediction, path: str | Path) -> None:
    """Draws each call at its FLOP per byte and its predicted FLOP/s, below the roofline of the chip.

    The suffix of ``path`` selects the format, such as .svg, .png or .pdf. Raises :class:`RooflineError` if matplotlib
    is missing, the suffix is unknown or no call does arithmetic, and OSError if the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RooflineError(
            "the roofline is drawn by the package matplotlib, which is not installed. Install it with: "
            'pip install "openreg-predict[picture]"'
        ) from error
    groups: dict[str, list[tuple[float, float, float]]] = {}
    for call, cost in zip(prediction.program.calls, prediction.costs, strict=True):
        work = call.work
        if work.flops and work.size and cost.seconds:
            groups.setdefault(call.work.kind, []).append(
                (work.flops / work.size, work.flops / cost.seconds, cost.seconds)
            )
    if not groups:
        raise RooflineError(f"{path}: no call of the program does arithmetic, so there is no roofline to draw")
    chip = prediction.chip
    bandwidth = chip.memory_bandwidth.value
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    intensities = [point[0] for points in groups.values() for point in points]
    low, high = min([*intensities, 0.05]) / 2, max([*intensities, 1000.0]) * 2
    for unit in ("matrix", "vector"):
        rate, dtype = rate_of(chip, unit, prediction.dtype)
        ridge = rate / bandwidth
        axes.plot([low, ridge, high], [low * bandwidth, rate, rate], label=f"{unit} {dtype}, {rate / 1e12:.3g} TFLOP/s")
    longest = max(point[2] for points in groups.values() for point in points)
    for kind, points in sorted(groups.items()):
        sizes = [8 + 80 * point[2] / longest for point in points]
        axes.scatter([point[0] for point in points], [point[1] for point in points], sizes, label=kind, alpha=0.6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("FLOP per byte")
    axes.set_ylabel("FLOP/s")
    axes.set_title(f"{chip.title}: {prediction.error_text()}", fontsize=7)
    axes.legend(fontsize=7)
    try:
        figure.savefig(path)
    except ValueError as error:
        raise RooflineError(f"{path}: {error}") from error
