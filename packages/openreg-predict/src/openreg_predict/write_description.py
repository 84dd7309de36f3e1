# SPDX-License-Identifier: BSD-3-Clause
"""Writes descriptions of chips, or replaces the efficiencies and validated errors in the text of one.

The efficiencies are the reached parts of the chip's peak rates, by class of operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from openreg_predict.description import ALL, CLASSES, Curve, Description, Efficiency, Quantity, Validation

_EFFICIENCIES = re.compile(r"(?ms)^(# [^\n]*\n)*\[efficiency\..*?(?=^\[\[validated|\Z)")
_VALIDATIONS = re.compile(r"(?ms)^(# [^\n]*\n)*\[\[validated\]\].*\Z")


def _curve(curve: Curve) -> str:
    note = f', note = "{curve.note}"' if curve.note else ""
    if len(curve.points) == 1:
        return f'{{ value = {curve.points[0][1]:g}, source = "{curve.source}"{note} }}'
    points = ", ".join(f"[{work:g}, {fraction:g}]" for work, fraction in curve.points)
    return f'{{ points = [{points}], source = "{curve.source}"{note} }}'


def efficiencies(found: Mapping[str, Efficiency]) -> str:
    """Returns the TOML tables of efficiencies."""
    parts = ["# Fractions of the peaks over FLOP (compute) or bytes (memory) of a call.\n"]
    for kind in CLASSES:
        if kind in found:
            efficiency = found[kind]
            lines = [f"[efficiency.{kind}]"]
            if efficiency.compute is not ALL:
                lines.append(f"compute = {_curve(efficiency.compute)}")
            if efficiency.memory is not ALL:
                lines.append(f"memory = {_curve(efficiency.memory)}")
            if efficiency.columns is not ALL:
                lines.append(f"columns = {_curve(efficiency.columns)}")
            if efficiency.tiles:
                lines.append(f"tiles = {[list(tile) for tile in efficiency.tiles]}")
            if efficiency.ramp:
                source = efficiency.compute.source
                lines.append(f'ramp = {{ value = {efficiency.ramp:g}, source = "{source}" }}')
            parts.append("\n".join(lines) + "\n\n")
    return "".join(parts).rstrip() + "\n"


def with_efficiencies(text: str, found: Mapping[str, Efficiency]) -> str:
    """Returns the text of a description with other efficiencies, and without the validations of the old ones."""
    bare = _VALIDATIONS.sub("", text)
    match = _EFFICIENCIES.search(bare)
    kept = bare[: match.start()] if match else bare
    return kept.rstrip() + "\n\n" + efficiencies(found)


def with_validations(text: str, found: Iterable[Validation]) -> str:
    """Returns the text of a description with other validations."""
    bare = _VALIDATIONS.sub("", text).rstrip() + "\n"
    for item in found:
        classes = ", ".join(f'"{name}"' for name in item.classes)
        bare += (
            f'\n[[validated]]\nmode = "{item.mode}"\ndtype = "{item.dtype}"\ncount = {item.count}\n'
            f"mean = {item.mean:.3f}\npercentile_90 = {item.percentile_90:.3f}\nworst = {item.worst:.3f}\n"
            f'note = "{item.note}"\nclasses = [{classes}]\n'
        )
    return bare


def whole(chip: Description) -> str:
    """Returns the text of a description file for a chip."""
    lines = [
        "# SPDX-License-Identifier: BSD-3-Clause",
        "schema = 1",
        f'title = "{chip.title}"',
        "",
        "[compute]",
        f'parallel_units = {{ value = {chip.parallel_units}, source = "assumed" }}',
    ]
    for unit in ("matrix", "vector"):
        rates = {dtype: rate for (own, dtype), rate in chip.rates.items() if own == unit}
        if rates:
            lines += [
                "",
                f"[compute.{unit}]",
                *(f"{key} = {_quantity(rate, 'GFLOP/s', 1e9)}" for key, rate in rates.items()),
            ]
    lines += ["", "[memory]", f"size = {_quantity(chip.memory_size, 'GiB', 2.0**30)}"]
    lines.append(f"bandwidth = {_quantity(chip.memory_bandwidth, 'GB/s', 1e9)}")
    for cache in chip.caches:
        lines += ["", "[[cache]]", f"level = {cache.level}", f"size = {_quantity(cache.size, 'KiB', 2.0**10)}"]
        if cache.bandwidth is not None:
            lines.append(f"bandwidth = {_quantity(cache.bandwidth, 'GB/s', 1e9)}")
    lines += ["", "[launch]"]
    for name in ("host", "device", "graph"):
        lines.append(f"{name} = {_quantity(getattr(chip, f'launch_{name}'), 'us', 1e-6)}")
    lines += ["", "[copy]", f'engines = {{ value = {chip.copy_engines}, source = "assumed" }}']
    for name, link in chip.links.items():
        lines += ["", f"[link.{name}]", f"bandwidth = {_quantity(link.bandwidth, 'GB/s', 1e9)}"]
        lines.append(f"latency = {_quantity(link.latency, 'us', 1e-6)}")
    if chip.power is not None:
        lines += ["", "[power]", f"limit = {_quantity(chip.power.limit, 'W', 1.0)}"]
        lines.append(f"energy = {_quantity(chip.power.energy, 'pJ', 1e-12)}")
    return with_validations("\n".join(lines) + "\n\n" + efficiencies(chip.efficiencies), chip.validations)


def _quantity(quantity: Quantity, unit: str, factor: float) -> str:
    note = f', note = "{quantity.note}"' if quantity.note else ""
    return f'{{ value = {quantity.value / factor:.6g}, unit = "{unit}", source = "{quantity.source}"{note} }}'
