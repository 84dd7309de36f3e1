# SPDX-License-Identifier: BSD-3-Clause
"""Runs the scripts of the suite that measure other things than workloads, and returns their results as families."""

from collections.abc import Callable

import build_time
import collectives
import compile_time
import host_costs
import import_time
import peak_memory
import scaling
from results import Family
from targets import ADDED_IMPORT

IMPORT_ROUNDS = 11  # at least, because imports of torch differ by more than the time that the backend adds
MEMORY_ROUNDS = 3  # at most, because memory hardly differs
COMPILE_ROUNDS = 3  # at most, because each starts twenty processes, most of which call a C++ compiler


def host_cost(rounds: int, seconds: float) -> Family:
    """Returns the seconds per call of the C API and of the allocator, as medians of each process."""
    del seconds
    runs = host_costs.measure(rounds)
    host_costs.show(runs)
    return {name: {"openreg": [run[name] * 1e-9 for run in runs]} for name in runs[0]}


def import_of_torch(rounds: int, seconds: float) -> Family:
    """Returns the seconds of `import torch` with and without the backend, and those that loading it adds."""
    del seconds
    rounds = max(rounds, IMPORT_ROUNDS)
    times = import_time.measure(rounds)
    import_time.show(times, rounds)
    clocks = {what: [milliseconds * 1e-3 for milliseconds in clock] for what, (clock, _) in times.items()}
    return {
        "import torch": {"openreg": clocks["import torch, with"], "cpu": clocks["import torch, without"]},
        ADDED_IMPORT: {"openreg": clocks["loading the backend after it"]},
    }


def curves(rounds: int, seconds: float) -> Family:
    """Returns the seconds per launch for the points of all curves."""
    family = scaling.measure(rounds, seconds)
    scaling.show(family)
    return family


def memory(rounds: int, seconds: float) -> Family:
    """Returns the peak bytes of training."""
    del seconds
    return peak_memory.measure(min(rounds, MEMORY_ROUNDS))


def compiling(rounds: int, seconds: float) -> Family:
    """Returns the seconds that torch.compile takes for a training step, with an empty and a full cache."""
    del seconds
    return compile_time.measure(min(rounds, COMPILE_ROUNDS))


def processes_together(rounds: int, seconds: float) -> Family:
    """Returns the seconds of collectives between two processes."""
    return collectives.measure(rounds, seconds)


PARTS: dict[str, Callable[[int, float], Family]] = {
    "host costs": host_cost,
    "import time": import_of_torch,
    "scaling": curves,
    "peak memory": memory,
    "compile time": compiling,
    "distributed": processes_together,
}


def builds(python: str) -> dict[str, Family]:
    """Returns the family of build times."""
    family = build_time.measure(python)
    return {"build time": family}
