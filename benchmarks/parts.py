# SPDX-License-Identifier: BSD-3-Clause
"""What the suite measures besides workloads: scripts of their own, here as families of results like any other."""

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

IMPORT_ROUNDS = 11  # one import of torch differs more from the next than what is added to it
MEMORY_ROUNDS = 3  # memory hardly differs
COMPILE_ROUNDS = 3  # each starts twenty processes, most of which call a C++ compiler


def host_cost(rounds: int, seconds: float) -> Family:
    """Seconds per call of the C API and of the allocator, medians of each process."""
    del seconds
    runs = host_costs.measure(rounds)
    host_costs.show(runs)
    return {name: {"openreg": [run[name] * 1e-9 for run in runs]} for name in runs[0]}


def import_of_torch(rounds: int, seconds: float) -> Family:
    """`import torch` with and without the backend, and what loading it adds."""
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
    """Time per launch while there is more and more of something."""
    family = scaling.measure(rounds, seconds)
    scaling.show(family)
    return family


def memory(rounds: int, seconds: float) -> Family:
    """Bytes that training takes at most."""
    del seconds
    return peak_memory.measure(min(rounds, MEMORY_ROUNDS))


def compiling(rounds: int, seconds: float) -> Family:
    """Seconds that torch.compile takes for a training step, twice on one cache."""
    del seconds
    return compile_time.measure(min(rounds, COMPILE_ROUNDS))


def processes_together(rounds: int, seconds: float) -> Family:
    """Seconds of two processes that work together."""
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
    """The family of the build time."""
    family = build_time.measure(python)
    return {"build time": family}
