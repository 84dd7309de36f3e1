# SPDX-License-Identifier: BSD-3-Clause
"""Reads a user's copy of the published measurements (the repository sitar-lab/NeuSight).

split.toml lists the files that calibrate descriptions of chips, and the models that validate them.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openreg_predict.fit import Sample
from openreg_predict.work import OperatorWork

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SPLIT = Path(__file__).with_name("split.toml")
_NAME = re.compile(r"(?P<model>\w+?)-(?P<mode>inf|train)-(?P<length>\d+)-(?P<batch>\d+)(?P<rest>.*)")
_BYTES = 4  # per element: all measurements are of float32
_PRODUCTS = ("linear", "bmm")
# Elementwise operators with two operands.
_BINARY = ("add", "mul", "div", "pow")


class DataError(ValueError):
    """An error in the user's copy of the measurements. The message names the file and what was expected."""


@dataclass(frozen=True)
class MeasuredCase:
    """A measurement of a whole model on a device. ``seconds`` is the time of one step."""

    device: str
    model: str
    mode: str  # training or inference
    length: int
    batch: int
    seconds: float

    @property
    def name(self) -> str:
        """Returns the name of the model in tables, with length and batch if there are any."""
        return f"{self.model}, {self.length} x {self.batch}" if self.length else self.model


def split() -> dict[str, Any]:
    """Returns the content of split.toml: the files for calibration and the models for validation."""
    return tomllib.loads(SPLIT.read_text("utf-8"))


def _folder(data: Path, name: str) -> Path:
    folder = data / name
    if not folder.is_dir():
        raise DataError(
            f"--data {data} has no folder {name!r}; give the folder of the repository sitar-lab/NeuSight that contains "
            "operators/ and label/"
        )
    return folder


def samples(data: Path, description: str) -> list[Sample]:
    """Returns the measurements of single operators on one device.

    ``description`` is the name of the device's description. Raises :class:`DataError` if the copy has no measurements
    of that device, or if a file is missing or wrong.
    """
    table = split()
    names = {device for device, name in table["devices"].items() if name == description}
    if not names:
        raise DataError(
            f"--data {data} has no measurements of {description!r}; give one of {', '.join(table['other'])}"
        )
    _folder(data, "operators")
    found = []
    for file in table["calibrates"]["files"]:
        found += [_sample(place, row) for place, row in _rows(data / file) if row["Device"] in names]
    return found


def _check_columns(place: str, row: dict[str, str], columns: Iterable[str]) -> None:
    """Raises DataError if a row has no value in one of the columns, because its file has none or the row is short."""
    missing = [key for key in columns if not row.get(key)]
    if missing:
        raise DataError(f"{place}: there is no column {', '.join(missing)}")


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Reads a CSV file. Returns the place of each row, for errors, and the row."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            for number, row in enumerate(csv.DictReader(stream), 2):
                place = f"{path}, line {number}"
                _check_columns(place, row, ("OPName", "Latency", "Device"))
                yield place, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _sample(place: str, row: dict[str, str]) -> Sample:
    """Returns the measured call in a row of a CSV file."""
    columns = "BMNK" if row["OPName"] in _PRODUCTS else "BH"
    _check_columns(place, row, columns)
    try:
        seconds = float(row["Latency"]) * 1e-3
        sizes = {key: int(row[key]) for key in columns}
    except ValueError as error:
        raise DataError(
            f"{place}: the measurement {row['OPName']} on {row['Device']} has no number: {error}"
        ) from error
    return Sample(_work(row["OPName"], sizes), seconds)


def _work(name: str, sizes: dict[str, int]) -> OperatorWork:
    """Returns the work of a measured operator call, from its name and sizes in the file."""
    if name in _PRODUCTS:
        batch, rows, columns, depth = (sizes[key] for key in "BMNK")
        elements = batch * (rows * depth + depth * columns + rows * columns)
        kind = "batched_matmul"
        if name == "linear":  # one weight for the whole batch, and a bias
            batch, rows, kind = 1, batch * rows, "matmul"
            elements = rows * depth + depth * columns + rows * columns + columns
        flops = 2 * batch * rows * columns * depth
        return OperatorWork(kind, "float32", "matrix", flops, _BYTES * elements, (batch, rows, columns, depth))
    count = sizes["B"] * sizes["H"]
    kind = {"ln": "normalization", "softmax": "softmax"}.get(name, "elementwise")
    return OperatorWork(kind, flops=count, size=_BYTES * count * (3 if name in _BINARY else 2))


def cases(data: Path) -> tuple[list[MeasuredCase], dict[str, str]]:
    """Returns the measured models, and the files that are left out with the reasons.

    Raises :class:`DataError` if the copy has no folder ``label``, or if a file has no number ``e2e_latency``.
    """
    table = split()
    found: list[MeasuredCase] = []
    left_out: dict[str, str] = {}
    for path in sorted(_folder(data, "label").glob("*/*.json")):
        file = f"{path.parent.name}/{path.name}"
        reason = next((item["why"] for item in table["left_out"] if re.search(item["pattern"], path.stem)), None)
        device = table["devices"].get(path.parent.name.replace("_", " ")) or table["devices"].get(
            path.parent.name.replace("NVIDIA_", "NVIDIA ").replace("Tesla_", "Tesla ")
        )
        match = _NAME.fullmatch(path.stem)
        if reason is None and (match is None or match["model"] not in table["validates"]["models"]):
            reason = "a model that this package does not describe"
        if reason is None and device is None:
            reason = "a device without a description"
        if reason is not None or match is None or device is None:
            left_out[file] = reason or "unknown"
            continue
        try:
            seconds = float(json.loads(path.read_text("utf-8"))["e2e_latency"]) * 1e-3
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} has no number e2e_latency: {error}") from error
        mode = table["validates"]["modes"][match["mode"]]
        found.append(MeasuredCase(device, match["model"], mode, int(match["length"]), int(match["batch"]), seconds))
    return found, left_out
