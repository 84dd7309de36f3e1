# SPDX-License-Identifier: BSD-3-Clause
"""Reads and checks the TOML tables of a chip's description. Each error has the key and what to write instead."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from openreg_predict.units import UNITS, dimension_of

SOURCES = ("data sheet", "measured", "assumed")


class DescriptionError(ValueError):
    """An error in a description. The message has the file, the key, a wrong value, and what to write instead."""


class Reader:
    """A table of a description. ``where`` is the file, and ``prefix`` the path of the table with a dot at its end."""

    DTYPES: ClassVar[tuple[str, ...]] = (
        "float64",
        "float32",
        "tfloat32",
        "bfloat16",
        "float16",
        "float8",
        "int8",
    )

    def __init__(self, where: str, content: Mapping[str, Any], prefix: str = "") -> None:
        self._where, self._content, self._prefix = where, content, prefix

    def error(self, key: str, message: str) -> DescriptionError:
        """Returns an error about a key, for the caller to raise."""
        return DescriptionError(f"{self._where}: {self._prefix}{key} {message}")

    def allow(self, *known: str) -> None:
        """Raises DescriptionError if the table has a key that is not in ``known``."""
        for key in self._content:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
                raise self.error(key, f"is no key of a description; {hint}")

    def has(self, key: str) -> bool:
        """Returns True if the table has the key."""
        return key in self._content

    def version(self, expected: int) -> None:
        """Raises DescriptionError if the key ``schema`` is not ``expected``."""
        found = self._content.get("schema")
        if found != expected or isinstance(found, bool):
            raise self.error("schema", f"is {found!r}; this package reads schema = {expected}")

    def _get(self, key: str, types: type | tuple[type, ...], expected: str) -> Any:
        """Returns the value of a key. Raises DescriptionError if it is missing, a bool, or of another type."""
        if key not in self._content:
            raise self.error(key, f"is missing; it has to be {expected}")
        found = self._content[key]
        if not isinstance(found, types) or isinstance(found, bool):
            raise self.error(key, f"is {found!r}; it has to be {expected}")
        return found

    def text(self, key: str) -> str:
        """Returns a text that is not empty."""
        found: str = self._get(key, str, "a text")
        if not found.strip():
            raise self.error(key, "is empty; it has to be a text")
        return found

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """Returns a text that is one of ``choices``."""
        found = self.text(key)
        if found not in choices:
            raise self.error(key, f"is {found!r}; it has to be one of {', '.join(choices)}")
        return found

    def choices(self, key: str, choices: tuple[str, ...]) -> tuple[str, ...]:
        """Returns a list whose items are in ``choices``."""
        found = self._get(key, list, "a list of texts")
        for item in found:
            if item not in choices:
                raise self.error(key, f"has {item!r}; it has to be a list of {', '.join(choices)}")
        return tuple(found)

    def integer(self, key: str, least: int, most: int) -> int:
        """Returns an integer from ``least`` to ``most``."""
        found: int = self._get(key, int, f"a whole number from {least} to {most}")
        if not least <= found <= most:
            raise self.error(key, f"is {found}; it has to be a whole number from {least} to {most}")
        return found

    def number(self, key: str, least: float, most: float) -> float:
        """Returns a number from ``least`` to ``most``."""
        found = float(self._get(key, (int, float), "a number"))
        if not (math.isfinite(found) and least <= found <= most):
            raise self.error(key, f"is {found}; it has to lie between {least:g} and {most:g}")
        return found

    def table(self, key: str) -> Reader:
        """Returns a reader of a nested table."""
        return Reader(self._where, self._get(key, dict, "a table"), f"{self._prefix}{key}.")

    def tables(self, key: str) -> list[Reader]:
        """Returns readers of the tables of an array, or an empty list if the key is missing."""
        if key not in self._content:
            return []
        found = self._get(key, list, "an array of tables")
        for index, item in enumerate(found):
            if not isinstance(item, dict):
                raise self.error(f"{key}[{index}]", f"is {item!r}; it has to be a table")
        return [Reader(self._where, item, f"{self._prefix}{key}[{index}].") for index, item in enumerate(found)]

    def dtypes(self) -> list[str]:
        """Returns the keys, which have to be dtypes."""
        self.allow(*self.DTYPES)
        return list(self._content)

    def _source(self) -> tuple[str, str]:
        """Returns the source and the note of a number."""
        source = self.choice("source", SOURCES)
        return source, self.text("note") if self.has("note") else ""

    def quantity(self, key: str, dimension: str, least: float, most: float) -> tuple[float, str, str]:
        """Returns (value in SI units, source, note) of ``{ value, unit, source, note }``. A count has no unit."""
        example = "" if dimension == "count" else f', unit = "{next(reversed(UNITS[dimension]))}"'
        form = f'{{ value = NUMBER{example}, source = "data sheet" }}'
        inside = Reader(self._where, self._get(key, dict, form), f"{self._prefix}{key}.")
        inside.allow("value", "source", "note", *(() if dimension == "count" else ("unit",)))
        factor = 1.0
        if dimension != "count":
            unit = inside.text("unit")
            if unit not in UNITS[dimension]:
                other = dimension_of(unit)
                what = f"is a unit of {other}, not of {dimension}" if other else "is no known unit"
                raise inside.error("unit", f"{unit!r} {what}; write one of {', '.join(UNITS[dimension])}")
            factor = UNITS[dimension][unit]
        found = float(inside._get("value", (int, float), "a number"))
        value = found * factor
        if not math.isfinite(value) or value < 0:
            raise inside.error("value", f"is {found:g}; a {dimension} is a number that is not negative")
        if not least <= value <= most:
            raise inside.error(
                "value",
                f"with its unit is {value:g}; plausible are values from {least:g} to {most:g}; check the unit",
            )
        if dimension == "count" and value != int(value):
            raise inside.error("value", f"is {found:g}; a count is a whole number")
        return (value, *inside._source())

    def curve(self, key: str) -> tuple[tuple[tuple[float, float], ...], str, str]:
        """Returns (points, source, note) of ``{ value, source }`` or ``{ points = [[work, fraction], ...], source }``.

        The work is a number of FLOP, bytes or columns, depending on the curve. The note may be empty. A single value is
        a curve with one point.
        """
        form = '{ value = 0.8, source = "assumed" } or { points = [[work, fraction], ...], source = "measured" }'
        inside = Reader(self._where, self._get(key, dict, form), f"{self._prefix}{key}.")
        inside.allow("value", "points", "source", "note")
        if inside.has("value") == inside.has("points"):
            raise self.error(key, f"needs either value or points: {form}")
        if inside.has("value"):
            points = [(1.0, inside._fraction("value", inside._content["value"]))]
        else:
            points = inside._points()
        return (tuple(points), *inside._source())

    def _fraction(self, key: str, found: object) -> float:
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found <= 20:
            raise self.error(
                key,
                f"is {found!r}; it has to be a fraction of the peak: above 0, and at most 20, because caches are "
                "faster than the memory",
            )
        return float(found)

    def _points(self) -> list[tuple[float, float]]:
        points: list[tuple[float, float]] = []
        for index, item in enumerate(self._get("points", list, "a list of [work, fraction]")):
            key = f"points[{index}]"
            if not isinstance(item, list) or len(item) != 2 or isinstance(item[0], bool):
                raise self.error(key, f"is {item!r}; a point is [work, fraction]")
            work = item[0]
            if (
                not isinstance(work, (int, float))
                or not math.isfinite(work)
                or work <= (points[-1][0] if points else 0)
            ):
                raise self.error(key, f"has the work {work!r}; work is above 0 and grows from point to point")
            points.append((float(work), self._fraction(key, item[1])))
        if not points:
            raise self.error("points", "is empty; a curve has at least one point")
        return points

    def tiles(self, key: str) -> tuple[tuple[int, int], ...]:
        """Returns tiles as pairs of rows and columns."""
        found = self._get(key, list, "a list of [rows, columns]")
        for index, item in enumerate(found):
            if not (
                isinstance(item, list)
                and len(item) == 2
                and all(isinstance(side, int) and not isinstance(side, bool) and 1 <= side <= 4096 for side in item)
            ):
                raise self.error(f"{key}[{index}]", f"is {item!r}; a tile is [rows, columns], each from 1 to 4096")
        return tuple((item[0], item[1]) for item in found)
