# SPDX-License-Identifier: BSD-3-Clause
"""usage: python -m openreg_predict run|compare|calibrate|validate.

`run` and `compare` predict the time and memory of a program on a described chip, `calibrate` writes descriptions, and
`validate` measures the error of their predictions.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from openreg_predict import commands
from openreg_predict.description import DescriptionError, built_in, load
from openreg_predict.predict import predict
from openreg_predict.published.data import DataError
from openreg_predict.report import RooflineError, as_document, draw_roofline, show, show_comparison
from openreg_predict.script import ScriptError, program_of
from openreg_predict.trace import Program, TraceError
from openreg_predict.what_if import FORMS, WhatIfError, apply, parse


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m openreg_predict",
        description="Predicts the time and memory of a PyTorch program on a described chip.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True)
    devices = f"a description: {', '.join(built_in())}, or the path of a .toml file"
    run = subparsers.add_parser("run", help="predicts a script's step, or with --on openreg runs it")
    run.add_argument("script", help="a script with a function step(); any other is recorded as a whole")
    run.add_argument("--device", required=True, help=devices)
    run.add_argument(
        "--on",
        choices=("meta", "openreg"),
        default="meta",
        help="meta: without values; openreg: on the device, in simulated time of the chip",
    )
    run.add_argument("--roofline", metavar="FILE", help="draws the roofline to a .svg, .png or .pdf file")
    run.add_argument("--trace", metavar="FILE", help="writes the schedule in Chrome's format (with --on openreg)")
    compare = subparsers.add_parser("compare", help="predicts a script for several chips and what-ifs, side by side")
    compare.add_argument("script")
    compare.add_argument("--device", required=True, nargs="+", help=devices)
    compare.add_argument("--what-if", nargs="+", default=[], metavar="CHANGE", help=FORMS)
    for command in (run, compare):
        command.add_argument(
            "--assume", type=float, help="a number that replaces each value that the script reads from a tensor"
        )
        command.add_argument("--json", action="store_true")
    calibrate = subparsers.add_parser(
        "calibrate", help="describes this machine's CPU, or with --data calibrates a description"
    )
    calibrate.add_argument("output", help="the description to write")
    calibrate.add_argument("--data", type=Path, help="a copy of published measurements")
    calibrate.add_argument("--device", help="with --data: the description to calibrate")
    calibrate.add_argument(
        "--lender",
        help="with --data: the description whose efficiencies (the reached parts of the chip's peak rates) replace "
        "those that were not measured",
    )
    validate = subparsers.add_parser("validate", help="compares predictions with measurements")
    validate.add_argument(
        "--data", type=Path, help="a copy of published measurements; without it models are measured on this machine"
    )
    validate.add_argument("--device", help="without --data: the description that calibrate wrote")
    validate.add_argument("--json", action="store_true")
    validate.add_argument("--write", action="store_true", help="writes the errors into the descriptions")
    return parser


def _run(options: argparse.Namespace) -> None:
    chip = load(options.device)
    if options.on == "openreg":
        if options.roofline:
            raise ScriptError("--roofline draws a prediction, and --on openreg makes none; give one of them")
        if options.assume is not None:
            raise ScriptError("--assume replaces values that --on openreg has; give one of them")
        commands.run_on_device(options.script, chip, options.trace, options.json)
        return
    if options.trace:
        raise ScriptError("--trace writes the schedule of the streams, which needs --on openreg")
    prediction = predict(program_of(options.script, assume=options.assume), chip)
    if options.roofline:
        draw_roofline(prediction, options.roofline)
    if options.json:
        print(json.dumps(as_document(prediction), indent=1))
    else:
        show(prediction)


def _compare(options: argparse.Namespace) -> None:
    recorded: dict[str, Program] = {}

    def program(values: dict[str, object]) -> Program:
        key = repr(values)  # lists are no keys, and 1 and True are the same one
        if key not in recorded:
            recorded[key] = program_of(options.script, values, options.assume)
        return recorded[key]

    changes = [parse(text) for text in options.what_if]
    found = []
    for chip in [load(name) for name in options.device]:
        found.append((chip.name, predict(program({}), chip)))
        found += [(f"{chip.name}, {change.text}", apply(change, chip, program)) for change in changes]
    if options.json:
        print(json.dumps({name: as_document(item) for name, item in found}, indent=1))
    else:
        show_comparison(found)


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns 0, or prints a message to standard error and returns 1 if the command fails."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "run":
            _run(options)
        elif options.command == "compare":
            _compare(options)
        elif options.command == "calibrate":
            commands.calibrate(options.output, options.data, options.device, options.lender)
        else:
            commands.validate(options.data, options.device, options.json, options.write)
    except (DescriptionError, ScriptError, TraceError, WhatIfError, DataError, RooflineError, OSError) as error:
        print(f"python -m openreg_predict {options.command}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
