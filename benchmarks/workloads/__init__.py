# SPDX-License-Identifier: BSD-3-Clause
"""The workloads, grouped into families. A process measures one family on one device."""

from workloads import compiled, inference, memory, operators, small_operators, streams, training
from workloads.workload import Workload

__all__ = ["FAMILIES", "Workload"]

FAMILIES: dict[str, list[Workload]] = {
    "memory": memory.WORKLOADS,
    "small operators": small_operators.WORKLOADS,
    "operators": operators.WORKLOADS,
    "training": training.WORKLOADS,
    "inference": inference.WORKLOADS,
    "streams": streams.WORKLOADS,
    "compiled": compiled.WORKLOADS,
}
