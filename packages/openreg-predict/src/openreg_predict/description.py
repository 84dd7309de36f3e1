# SPDX-License-Identifier: BSD-3-Clause
"""Reads descriptions of chips: TOML files with rates, bandwidths, sizes and efficiencies, each with its source.

An efficiency is the part of the chip's peak rates that a class of operators reaches.
"""

from __future__ import annotations

import bisect
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from openreg_predict.read_description import DescriptionError, Reader

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "CLASSES",
    "Curve",
    "Description",
    "DescriptionError",
    "Efficiency",
    "Link",
    "Quantity",
    "Validation",
    "built_in",
    "load",
    "parse",
]

FOLDER = Path(__file__).with_name("devices")

# Maps a class of operators to the class whose efficiency is used if a description omits its own. The two classes
# without a substitute are required.
CLASSES: dict[str, str | None] = {
    "matmul": None,
    "batched_matmul": "matmul",
    "convolution": "matmul",
    "attention": "batched_matmul",
    "elementwise": None,
    "reduction": "elementwise",
    "normalization": "reduction",
    "softmax": "reduction",
    "pooling": "reduction",
    "random": "elementwise",
    "embedding": "elementwise",
    "optimizer": "elementwise",
    "copy": "elementwise",
}


@dataclass(frozen=True)
class Quantity:
    """A number in SI units (FLOP/s, bytes/s, bytes, seconds) with its source: data sheet, measured or assumed."""

    value: float
    source: str
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """The fraction of a peak that a call reaches, by its work: FLOP, bytes or, for ``columns``, columns.

    ``points`` are (work, fraction), with linear interpolation over the logarithm of the work.
    """

    points: tuple[tuple[float, float], ...]
    source: str
    note: str = ""

    def at(self, work: float) -> float:
        """Returns the fraction for ``work``; beyond the ends it is that of the nearest point."""
        works = [point[0] for point in self.points]
        index = bisect.bisect_left(works, work)
        if index == 0:
            return self.points[0][1]
        if index == len(works):
            return self.points[-1][1]
        (low, below), (high, above) = self.points[index - 1], self.points[index]
        return below + (above - below) * math.log(work / low) / math.log(high / low)


ALL = Curve(((1.0, 1.0),), "assumed", "the peak itself")


@dataclass(frozen=True)
class Efficiency:
    """The fractions of the peaks that a class of operators reaches.

    ``compute`` is the fraction of the arithmetic peak by FLOP, and ``memory`` that of the bandwidth by bytes.
    ``tiles`` are the sizes of output tiles of a matrix product, as (rows, columns); the best one is used. A chip with
    several parallel units computes one tile on each of them at a time, so that some may have no tile in the last round.
    Without tiles, a product is not divided. ``ramp`` is the depth, which is the number of columns of the first matrix,
    at which a product reaches half of its rate. In a product of less depth, loading and storing tiles takes a larger
    part of the time. ``columns`` is a further fraction of the rate, by the columns of a product: caches hold less of a
    wider one.
    """

    compute: Curve = ALL
    memory: Curve = ALL
    tiles: tuple[tuple[int, int], ...] = ()
    ramp: float = 0.0
    columns: Curve = ALL


@dataclass(frozen=True)
class Power:
    """The sustained power limit in watts, and the energy of a float32 FLOP in joules.

    They lower the rate of a chip whose limit does not suffice for its peak.
    """

    limit: Quantity
    energy: Quantity


@dataclass(frozen=True)
class Link:
    """A connection of two memories: bytes/s in one direction, and seconds before the first byte."""

    bandwidth: Quantity
    latency: Quantity


@dataclass(frozen=True)
class Cache:
    """A cache with its level, its size in bytes and, if it is known, its bandwidth in bytes/s."""

    level: int
    size: Quantity
    bandwidth: Quantity | None


@dataclass(frozen=True)
class Validation:
    """Relative errors of the predictions of ``count`` programs that were not part of the calibration.

    ``classes`` are the classes of operators in which these programs spent their time. The errors do not apply to other
    classes.
    """

    mode: str  # training or inference
    dtype: str
    count: int
    mean: float
    percentile_90: float
    worst: float
    note: str
    classes: tuple[str, ...] = tuple(CLASSES)


@dataclass(frozen=True)
class Description:
    """The numbers of a chip that the cost model uses. Immutable: a changed chip is a changed copy."""

    name: str
    title: str
    parallel_units: int  # that compute one tile each, such as streaming multiprocessors
    rates: Mapping[tuple[str, str], Quantity]  # FLOP/s by kind of arithmetic ("matrix" or "vector") and dtype
    memory_size: Quantity
    memory_bandwidth: Quantity
    caches: tuple[Cache, ...]
    launch_host: Quantity  # seconds of the host for each operator
    launch_device: Quantity  # seconds of the device for each kernel
    launch_graph: Quantity  # the same for a kernel of a graph
    copy_engines: int
    links: Mapping[str, Link]
    efficiencies: Mapping[str, Efficiency]
    validations: tuple[Validation, ...] = field(default=())
    power: Power | None = None

    def efficiency(self, kind: str) -> Efficiency:
        """Returns the efficiency of a class of operators, or of the class that replaces it."""
        name: str | None = kind
        while name is not None:
            if name in self.efficiencies:
                return self.efficiencies[name]
            name = CLASSES[name]
        raise DescriptionError(
            f"the description {self.name!r} has no efficiency for the class {kind!r}; add it to the table efficiency"
        )

    def rate(self, unit: str, dtype: str) -> Quantity | None:
        """Returns the peak FLOP/s of the "matrix" or "vector" units (``unit``) for a dtype; None if there is none.

        If the matrix units have no rate for the dtype, the result is that of the vector units.
        """
        found = self.rates.get((unit, dtype))
        return found if found is not None or unit == "vector" else self.rates.get(("vector", dtype))

    def plain(self) -> Description:
        """Returns the chip as a plain roofline: calls reach the peaks, and launches take no time."""
        nothing = Quantity(0.0, "assumed", "plain roofline")
        return replace(
            self,
            efficiencies={"matmul": Efficiency(), "elementwise": Efficiency()},
            launch_host=nothing,
            launch_device=nothing,
            launch_graph=nothing,
            validations=(),
            power=None,
            caches=(),
        )

    def bandwidth_of(self, size: int) -> float:
        """Returns the bytes/s for a call that moves ``size`` bytes.

        It is that of the smallest cache that holds them and has a known bandwidth, but at least that of memory.
        """
        fitting = [cache for cache in self.caches if cache.bandwidth is not None and size <= cache.size.value]
        smallest = min(fitting, key=lambda cache: cache.size.value, default=None)
        if smallest is None or smallest.bandwidth is None:
            return self.memory_bandwidth.value
        return max(smallest.bandwidth.value, self.memory_bandwidth.value)

    def ceiling(self, dtype: str) -> float:
        """Returns the sustained FLOP/s within the power limit.

        Returns infinity for another dtype than float32, and for a chip whose power limit is not known.
        """
        if self.power is None or dtype != "float32":
            return math.inf
        return self.power.limit.value / self.power.energy.value

    def lent(self) -> dict[str, Efficiency]:
        """Returns these efficiencies for another chip: the source is "assumed", the note has this chip's name."""

        def assumed(curve: Curve) -> Curve:
            return curve if curve is ALL else Curve(curve.points, "assumed", f"that of {self.name}")

        return {
            kind: replace(
                item,
                compute=assumed(item.compute),
                memory=assumed(item.memory),
                columns=assumed(item.columns),
            )
            for kind, item in self.efficiencies.items()
        }

    def with_efficiencies_of(self, other: Description) -> Description:
        """Returns this chip with the efficiencies and device launch time of another one, and without validations."""
        return replace(
            self,
            name=f"{self.name} with efficiencies of {other.name}",
            efficiencies=other.lent(),
            launch_device=other.launch_device,
            validations=(),
        )

    def validation(self, mode: str, dtype: str) -> Validation | None:
        """Returns the validated errors for a mode (training or inference) and a dtype, or None if there are none."""
        return next((item for item in self.validations if (item.mode, item.dtype) == (mode, dtype)), None)


def built_in() -> list[str]:
    """Returns the sorted names of the descriptions in this package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str | Path) -> Description:
    """Returns the built-in description of this name, or the description in the .toml file at this path.

    Raises :class:`DescriptionError` if there is no such description, or if the file is wrong.
    """
    path = Path(name)
    if path.suffix != ".toml" and path.name == str(name):
        path = FOLDER / f"{name}.toml"
        if not path.is_file():
            raise DescriptionError(
                f"there is no description {str(name)!r}; give one of {', '.join(built_in())}, or a .toml file"
            )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"{path} cannot be read: {error}") from error
    return parse(text, str(path), path.stem)


def parse(text: str, where: str, name: str) -> Description:
    """Parses the TOML text of a description. ``where`` begins each message. Raises :class:`DescriptionError`."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"{where} is no TOML: {error}") from error
    return _build(Reader(where, tables), name)


def _build(top: Reader, name: str) -> Description:
    top.allow(
        "schema", "title", "compute", "memory", "cache", "launch", "copy", "link", "power", "efficiency", "validated"
    )
    top.version(1)
    compute, memory, launch = top.table("compute"), top.table("memory"), top.table("launch")
    compute.allow("parallel_units", "matrix", "vector")
    memory.allow("size", "bandwidth")
    launch.allow("host", "device", "graph")
    rates: dict[tuple[str, str], Quantity] = {}
    for unit in ("matrix", "vector"):
        if unit == "vector" or compute.has(unit):
            table = compute.table(unit)
            for dtype in table.dtypes():
                rates[unit, dtype] = Quantity(*table.quantity(dtype, "rate", 1e8, 1e18))
    if ("vector", "float32") not in rates:
        raise compute.error("vector.float32", "is missing; every chip needs the rate of its plain float32 arithmetic")
    efficiency = top.table("efficiency")
    efficiency.allow(*CLASSES)
    for kind, substitute in CLASSES.items():
        if substitute is None and not efficiency.has(kind):
            raise efficiency.error(
                kind, 'is missing; where nothing is known, write compute = { value = 0.8, source = "assumed" }'
            )
    return Description(
        name=name,
        title=top.text("title"),
        parallel_units=int(compute.quantity("parallel_units", "count", 1, 1e6)[0]),
        rates=rates,
        memory_size=Quantity(*memory.quantity("size", "size", 1e6, 1e15)),
        memory_bandwidth=Quantity(*memory.quantity("bandwidth", "bandwidth", 1e7, 1e15)),
        caches=tuple(_cache(table) for table in top.tables("cache")),
        launch_host=Quantity(*launch.quantity("host", "time", 0, 1)),
        launch_device=Quantity(*launch.quantity("device", "time", 0, 1)),
        launch_graph=Quantity(*launch.quantity("graph", "time", 0, 1)),
        copy_engines=_copy_engines(top.table("copy")),
        links=_links(top.table("link")) if top.has("link") else {},
        efficiencies={kind: _efficiency(efficiency.table(kind)) for kind in CLASSES if efficiency.has(kind)},
        validations=tuple(_validation(table) for table in top.tables("validated")),
        power=_power(top.table("power")) if top.has("power") else None,
    )


def _cache(table: Reader) -> Cache:
    table.allow("level", "size", "bandwidth")
    bandwidth = Quantity(*table.quantity("bandwidth", "bandwidth", 1e7, 1e16)) if table.has("bandwidth") else None
    return Cache(table.integer("level", 1, 9), Quantity(*table.quantity("size", "size", 1e3, 1e12)), bandwidth)


def _copy_engines(table: Reader) -> int:
    table.allow("engines")
    return int(table.quantity("engines", "count", 0, 64)[0])


def _links(table: Reader) -> dict[str, Link]:
    table.allow("host", "peer")
    found = {}
    for name in ("host", "peer"):
        if table.has(name):
            link = table.table(name)
            link.allow("bandwidth", "latency")
            found[name] = Link(
                Quantity(*link.quantity("bandwidth", "bandwidth", 1e6, 1e15)),
                Quantity(*link.quantity("latency", "time", 0, 1)),
            )
    return found


def _power(table: Reader) -> Power:
    table.allow("limit", "energy")
    return Power(
        Quantity(*table.quantity("limit", "power", 0.01, 1e5)),
        Quantity(*table.quantity("energy", "energy", 1e-15, 1e-6)),
    )


def _efficiency(table: Reader) -> Efficiency:
    table.allow("compute", "memory", "tiles", "ramp", "columns")
    return Efficiency(
        compute=Curve(*table.curve("compute")) if table.has("compute") else ALL,
        memory=Curve(*table.curve("memory")) if table.has("memory") else ALL,
        tiles=table.tiles("tiles") if table.has("tiles") else (),
        ramp=table.quantity("ramp", "count", 0, 1e4)[0] if table.has("ramp") else 0.0,
        columns=Curve(*table.curve("columns")) if table.has("columns") else ALL,
    )


def _validation(table: Reader) -> Validation:
    table.allow("mode", "dtype", "count", "mean", "percentile_90", "worst", "note", "classes")
    return Validation(
        mode=table.choice("mode", ("inference", "training")),
        dtype=table.choice("dtype", table.DTYPES),
        count=table.integer("count", 1, 10**6),
        mean=table.number("mean", 0, 100),
        percentile_90=table.number("percentile_90", 0, 100),
        worst=table.number("worst", 0, 100),
        note=table.text("note"),
        classes=table.choices("classes", tuple(CLASSES)) if table.has("classes") else tuple(CLASSES),
    )
