# SPDX-License-Identifier: BSD-3-Clause
"""Computes the time of an operator call on a described chip.

The model is the roofline: the longer of the time for arithmetic and the time for memory. The efficiencies of the chip
are the reached parts of its peak rates, for each class of operators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from openreg_predict.description import Description, Efficiency
from openreg_predict.work import OperatorWork

# Maps a dtype to the dtype whose rate (FLOP/s) it has.
_SAME = {"float8_e4m3fn": "float8", "float8_e5m2": "float8", "uint8": "int8", "bool": "int8"}
# Maps a dtype to the wider dtype whose rate is used if a chip has none for it.
_WIDER = {
    "float8": "float16",
    "float16": "float32",
    "bfloat16": "float32",
    "tfloat32": "float32",
    "int8": "float32",
    "complex64": "float32",
    "complex128": "float64",
}


@dataclass(frozen=True)
class Cost:
    """The seconds of an engine for a call, and what bounds them: compute, memory, launch, link or nothing."""

    seconds: float
    bound: str
    rate_of: str = ""  # the dtype whose rate is used if the chip has none for the call's dtype


def utilization(product: tuple[int, int, int, int], tiles: tuple[tuple[int, int], ...], units: int) -> float:
    """Returns the share of the chip that a matrix product uses, of the best tile size; 1 without tiles.

    ``product`` is (batch, rows, columns, depth). The product is rounded up to whole tiles, and the tiles to whole
    rounds of all units.
    """
    batch, rows, columns, _ = product
    best = 0.0
    for high, wide in tiles:
        count = batch * math.ceil(rows / high) * math.ceil(columns / wide)
        rounds = math.ceil(count / units)
        best = max(best, batch * rows * columns / (rounds * units * high * wide))
    return best or 1.0


def rate_of(chip: Description, unit: str, dtype: str) -> tuple[float, str]:
    """Returns the FLOP/s, and their dtype: `dtype`, or the next wider one for which the chip has a rate.

    float32, which all chips have, is used if none is wider: also for float64.
    """
    name = _SAME.get(dtype, dtype)
    while True:
        found = chip.rate(unit, name)
        if found is not None:
            return found.value, dtype if name == _SAME.get(dtype, dtype) else name
        name = _WIDER.get(name, "float32")


def seconds_of_arithmetic(chip: Description, work: OperatorWork, efficiency: Efficiency) -> tuple[float, str]:
    """Returns the seconds of a call on infinitely fast memory, and the dtype whose rate is used."""
    rate, dtype = rate_of(chip, work.unit, work.dtype)
    if work.flops == 0:  # a product without elements has no tiles, and no efficiency
        return 0.0, dtype
    reached = rate * efficiency.compute.at(max(work.flops, 1))
    if work.product is not None:
        depth = work.product[3]
        reached *= efficiency.columns.at(max(work.product[2], 1))
        reached *= utilization(work.product, efficiency.tiles, chip.parallel_units)
        reached *= depth / (depth + efficiency.ramp)
    if efficiency.compute.source != "measured":  # a measured rate already is below the power limit
        reached = min(reached, chip.ceiling(dtype))
    return work.flops / reached, dtype


def cost_of(chip: Description, work: OperatorWork, in_graph: bool = False) -> Cost:
    """Returns the engine time of a call, without the host time of its launch, and the bound of that time."""
    if work.kernels == 0:
        return Cost(0.0, "nothing")
    if work.link:
        return _over_link(chip, work)
    efficiency = chip.efficiency(work.kind)
    arithmetic, dtype = seconds_of_arithmetic(chip, work, efficiency)
    bandwidth = chip.memory_bandwidth.value
    if efficiency.memory.source != "measured":  # a measured efficiency already contains the effect of caches
        bandwidth = chip.bandwidth_of(work.size)
    memory = work.size / (bandwidth * efficiency.memory.at(max(work.size, 1)))
    launch = work.kernels * (chip.launch_graph if in_graph else chip.launch_device).value
    longest = max(arithmetic, memory)
    bound = "launch" if launch > longest else "compute" if arithmetic >= memory else "memory"
    return Cost(longest + launch, bound, "" if dtype == work.dtype else dtype)


def _over_link(chip: Description, work: OperatorWork) -> Cost:
    """Returns the time of a copy between host and device, or of a collective between devices."""
    link = chip.links.get(work.link)
    if link is None:
        # Without a peer link, data goes to the host and from there to the other device.
        host = chip.links.get("host")
        if host is None:
            return replace(cost_of(chip, replace(work, link="")), bound="memory")
        return Cost(2 * (work.messages * host.latency.value + work.size / host.bandwidth.value), "link")
    return Cost(work.messages * link.latency.value + work.size / link.bandwidth.value, "link")
