# SPDX-License-Identifier: BSD-3-Clause
"""Implements the commands that do more than predict: run on the device, calibrate and validate."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from rich.console import Console

from openreg_predict import cpu_calibration, cpu_validation_models, fit, script
from openreg_predict.description import FOLDER, Description, DescriptionError, load
from openreg_predict.predict import predict
from openreg_predict.published import data as published
from openreg_predict.report import show_validation
from openreg_predict.schedule import busy, write_trace
from openreg_predict.script import ScriptError
from openreg_predict.trace import trace
from openreg_predict.units import show_bytes, show_time
from openreg_predict.validate import (
    ValidationResult,
    as_document,
    compare,
    compare_to_measurement,
    summaries,
    validations,
)
from openreg_predict.write_description import whole, with_efficiencies, with_validations


def run_on_device(path: str, chip: Description, trace_file: str | None, as_json: bool) -> None:
    """Runs a script's ``step()`` on the openreg device in the chip's time, and prints the result.

    A first call of ``step()`` runs outside of the simulation. Raises ScriptError if the script cannot be read or has no
    ``step()``.
    """
    import openreg_ops  # noqa: F401  (if the backend is not autoloaded, no other code imports the operators)
    from openreg_predict.simulate import simulate

    code, has_step = script.load(path)
    if not has_step:
        raise ScriptError(f"{path} has no function step(), which --on openreg runs; define one")
    space = {"__name__": "openreg_predict_script", "__file__": path}
    sys.path.insert(0, str(Path(path).resolve().parent))
    with torch.device("openreg"), script.OnOpenreg():
        exec(code, space)
        step = space[script.STEP]
        step()  # type: ignore[operator]
        with simulate(chip) as run:
            step()  # type: ignore[operator]
    if trace_file:
        write_trace(run.timeline, trace_file, chip.title)
    engines = dict(busy(run.timeline))
    if as_json:
        document = {"device": chip.name, "seconds": run.seconds, "host_seconds": run.host_seconds, "engines": engines}
        print(json.dumps({**document, "peak_bytes": run.peak, "validated": None, "no_rule": run.without_rule()}))
        return
    console = Console(markup=False)  # titles of chips and names of operators are the user's
    console.print(
        f"{chip.title}: one step {show_time(run.seconds)}, host {show_time(run.host_seconds)}", highlight=False
    )
    for engine, seconds in engines.items():
        console.print(f"{engine}: busy {show_time(seconds)}, {seconds / run.seconds:.0%}", highlight=False)
    console.print(f"peak memory {show_bytes(run.peak)}", highlight=False)
    console.print("not validated: schedules of several streams have not been compared with measurements")
    for name in run.without_rule():
        console.print(f"note: no rule for {name}, counted by the bytes of its operands", highlight=False)


def calibrate(output: str, data: Path | None, device: str | None, lender: str | None) -> None:
    """Writes a description of this machine, or with ``data`` one calibrated by published measurements.

    ``device`` is the description to calibrate. ``lender`` is a description whose efficiencies (the reached parts of the
    chip's peak rates) replace those that were not measured. Raises DescriptionError or DataError for wrong arguments or
    files.
    """
    path = Path(output)
    if path.suffix != ".toml" or path.is_dir() or not path.absolute().parent.is_dir():
        raise DescriptionError(f"{path} cannot be written: give a file that ends with .toml in a folder that exists")
    if data is None:
        if device or lender:
            raise DescriptionError(
                "--device and --lender require --data; without it calibrate measures this machine's CPU"
            )
        path.write_text(whole(cpu_calibration.describe(path.stem)), "utf-8")
    else:
        if device is None:
            raise DescriptionError("--data requires --device with the description to calibrate: a name or a .toml file")
        chip = load(device)
        samples = published.samples(data, chip.name)
        found = fit.fit(chip, samples, "measured", "published micro-benchmarks in float32")
        if lender is not None:
            found = fit.with_reference_efficiencies(found, load(lender))
        source = Path(device) if device.endswith(".toml") else FOLDER / f"{device}.toml"
        path.write_text(with_efficiencies(source.read_text("utf-8"), {**chip.efficiencies, **found}), "utf-8")
    load(path)
    print(f"wrote {path}")


def cpu_validation_results(chip: Description) -> list[ValidationResult]:
    """Measures small models on one thread of this CPU, and compares each with its prediction from ``meta``."""
    results = []
    with cpu_calibration.one_thread():
        for name in cpu_validation_models.MODELS:
            for mode in ("inference", "training"):
                seconds = cpu_calibration.seconds_of(cpu_validation_models.step(name, mode == "training"), least=2e-2)
                with torch.device("meta"):
                    program = trace(cpu_validation_models.step(name, mode == "training"))
                case = published.MeasuredCase(chip.name, name, mode, 0, 0, seconds)
                for method, item in (("calibrated", chip), ("plain roofline", chip.plain())):
                    results.append(compare_to_measurement(case, method, predict(program, item)))
    return results


def validate(data: Path | None, device: str | None, as_json: bool, write: bool) -> None:
    """Compares predictions with measurements and prints the errors.

    With ``write``, also writes the errors into the descriptions. Raises DescriptionError or DataError for wrong
    arguments or files.
    """
    if data is not None:
        results, left_out = compare(data)
        note = "transformers of published measurements"
    else:
        if device is None:
            raise DescriptionError(
                "neither --data nor --device is given; give --data DIR, or --device FILE with a description that "
                "calibrate wrote on this machine"
            )
        results, left_out = cpu_validation_results(load(device)), {}
        note = "small models on this machine"
    found = summaries(results)
    if write:
        names = {device} if data is None and device else {result.case.device for result in results}
        for name in names:
            path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
            entries = validations(found, results, load(name).name, note)
            path.write_text(with_validations(path.read_text("utf-8"), entries), "utf-8")
    if as_json:
        print(json.dumps(as_document(results, left_out), indent=1))
    else:
        show_validation(found, results, left_out)
