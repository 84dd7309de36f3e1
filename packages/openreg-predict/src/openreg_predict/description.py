# SPDX-License-Identifier: BSD-3-Clause
"""The description of a chip: a TOML file in which every number says where it comes from."""

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

# Classes of operators, and whose efficiencies one takes that a description leaves out. The two without a substitute
# have to be there.
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
    """A number in SI units (FLOP/s, bytes/s, bytes, seconds) and its source: data sheet, measured or assumed."""

    value: float
    source: str
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """The fraction of a peak that some work (FLOP, or bytes) reaches: points joined in the logarithm of the work."""

    points: tuple[tuple[float, float], ...]
    source: str
    note: str = ""

    def at(self, work: float) -> float:
        """The fraction for so much work; beyond the ends that of the nearest point."""
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
    """What a class of operators reaches: of the arithmetic peak over FLOP, of the bandwidth over bytes moved.

    ``tiles`` are the output tiles of a matrix product, rows by columns: a chip of several units works on so many tiles
    at a time, and the last round may be partly empty. Empty: products are not cut. ``ramp`` is the depth of a product
    at which it reaches half of its rate, because tiles are filled and written out. ``columns`` is what is left of the
    rate over the columns of a product: the wider one is, the less of it caches hold.
    """

    compute: Curve = ALL
    memory: Curve = ALL
    tiles: tuple[tuple[int, int], ...] = ()
    ramp: float = 0.0
    columns: Curve = ALL


@dataclass(frozen=True)
class Power:
    """Watts that a chip may take for long, and joules of a float32 operation: a small card cannot hold its peak."""

    limit: Quantity
    energy: Quantity


@dataclass(frozen=True)
class Link:
    """A way between two memories: bytes/s in one direction, and the seconds before the first byte."""

    bandwidth: Quantity
    latency: Quantity


@dataclass(frozen=True)
class Cache:
    """A level of the memory hierarchy."""

    level: int
    size: Quantity
    bandwidth: Quantity | None


@dataclass(frozen=True)
class Validation:
    """Relative errors of predictions: of so many programs that had no part in calibration.

    ``classes`` are those in which these programs spent their time; of others nothing is known.
    """

    mode: str
    dtype: str
    count: int
    mean: float
    percentile_90: float
    worst: float
    note: str
    classes: tuple[str, ...] = tuple(CLASSES)


@dataclass(frozen=True)
class Description:
    """A chip as the cost model sees it. Immutable; what-if makes changed copies."""

    name: str
    title: str
    parallel_units: int
    rates: Mapping[tuple[str, str], Quantity]  # (unit, dtype): FLOP/s
    memory_size: Quantity
    memory_bandwidth: Quantity
    caches: tuple[Cache, ...]
    launch_host: Quantity
    launch_device: Quantity
    launch_graph: Quantity
    copy_engines: int
    links: Mapping[str, Link]
    efficiencies: Mapping[str, Efficiency]
    validations: tuple[Validation, ...] = field(default=())
    power: Power | None = None

    def efficiency(self, kind: str) -> Efficiency:
        """That of a class of operators, or of the class that stands in for it."""
        name: str | None = kind
        while name is not None:
            if name in self.efficiencies:
                return self.efficiencies[name]
            name = CLASSES[name]
        raise DescriptionError(f"{self.name}: no efficiency for the class {kind!r}")

    def rate(self, unit: str, dtype: str) -> Quantity | None:
        """The peak of a unit ("matrix", "vector") for a dtype; a chip without matrix units computes on vector ones."""
        found = self.rates.get((unit, dtype))
        return found if found is not None or unit == "vector" else self.rates.get(("vector", dtype))

    def plain(self) -> Description:
        """The roofline alone: peaks are reached, launches cost nothing."""
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
        """Bytes/s of so many bytes: of the smallest cache that holds them and whose bandwidth is known, or memory's."""
        fitting = [cache for cache in self.caches if cache.bandwidth is not None and size <= cache.size.value]
        smallest = min(fitting, key=lambda cache: cache.size.value, default=None)
        if smallest is None or smallest.bandwidth is None:
            return self.memory_bandwidth.value
        return max(smallest.bandwidth.value, self.memory_bandwidth.value)

    def ceiling(self, dtype: str) -> float:
        """The FLOP/s that the power allows for long; of other dtypes than float32 nothing is known."""
        if self.power is None or dtype != "float32":
            return math.inf
        return self.power.limit.value / self.power.energy.value

    def lent(self) -> dict[str, Efficiency]:
        """The efficiencies as another chip may borrow them: there they are assumed."""

        def from_reference_chip(curve: Curve) -> Curve:
            return curve if curve is ALL else Curve(curve.points, "assumed", f"that of {self.name}")

        return {
            kind: replace(
                item,
                compute=from_reference_chip(item.compute),
                memory=from_reference_chip(item.memory),
                columns=from_reference_chip(item.columns),
            )
            for kind, item in self.efficiencies.items()
        }

    def with_efficiencies_of(self, other: Description) -> Description:
        """This chip's peaks with another one's efficiencies and launch times; nothing validates the result."""
        return replace(
            self,
            name=f"{self.name} with efficiencies of {other.name}",
            efficiencies=other.lent(),
            launch_device=other.launch_device,
            validations=(),
        )

    def validation(self, mode: str, dtype: str) -> Validation | None:
        """What is known of the error of such predictions; None: not validated."""
        return next((item for item in self.validations if (item.mode, item.dtype) == (mode, dtype)), None)


def built_in() -> list[str]:
    """Names of the descriptions that this package brings."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str | Path) -> Description:
    """A description by the name of a built-in one or the path of a file.

    Raises :class:`DescriptionError` for a name that is neither, and for whatever is wrong in the file.
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
    """The description in a text; ``where`` begins every message. Raises :class:`DescriptionError`."""
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
