# SPDX-License-Identifier: BSD-3-Clause
"""Writes calibrated efficiencies and validated errors into the text of a description; the rest stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from openreg_predict.description import ALL, CLASSES, Curve, Efficiency, Validation

_EFFICIENCIES = re.compile(r"(?ms)^(# [^\n]*\n)*\[efficiency\..*?(?=^\[\[validated|\Z)")
_VALIDATIONS = re.compile(r"(?ms)^(# [^\n]*\n)*\[\[validated\]\].*\Z")


def _curve(curve: Curve) -> str:
    note = f', note = "{curve.note}"' if curve.note else ""
    if len(curve.points) == 1:
        return f'{{ value = {curve.points[0][1]:g}, source = "{curve.source}"{note} }}'
    points = ", ".join(f"[{work:g}, {fraction:g}]" for work, fraction in curve.points)
    return f'{{ points = [{points}], source = "{curve.source}"{note} }}'


def efficiencies(found: Mapping[str, Efficiency]) -> str:
    """The tables of efficiencies."""
    parts = ["# Fractions of the peaks over FLOP (compute) or bytes (memory) of a call.\n"]
    for kind in CLASSES:
        if kind in found:
            efficiency = found[kind]
            lines = [f"[efficiency.{kind}]"]
            if efficiency.compute is not ALL:
                lines.append(f"compute = {_curve(efficiency.compute)}")
            if efficiency.memory is not ALL:
                lines.append(f"memory = {_curve(efficiency.memory)}")
            if efficiency.tiles:
                lines.append(f"tiles = {[list(tile) for tile in efficiency.tiles]}")
            if efficiency.ramp:
                source = efficiency.compute.source
                lines.append(f'ramp = {{ value = {efficiency.ramp:g}, source = "{source}" }}')
            parts.append("\n".join(lines) + "\n\n")
    return "".join(parts).rstrip() + "\n"


def with_efficiencies(text: str, found: Mapping[str, Efficiency]) -> str:
    """A description with other efficiencies; what validated the old ones is taken out."""
    bare = _VALIDATIONS.sub("", text)
    match = _EFFICIENCIES.search(bare)
    kept = bare[: match.start()] if match else bare
    return kept.rstrip() + "\n\n" + efficiencies(found)


def with_validations(text: str, found: Iterable[Validation]) -> str:
    """A description with what is known of the errors of its predictions."""
    bare = _VALIDATIONS.sub("", text).rstrip() + "\n"
    for item in found:
        bare += (
            f'\n[[validated]]\nmode = "{item.mode}"\ndtype = "{item.dtype}"\ncount = {item.count}\n'
            f"mean = {item.mean:.3f}\npercentile_90 = {item.percentile_90:.3f}\nworst = {item.worst:.3f}\n"
            f'note = "{item.note}"\n'
        )
    return bare
