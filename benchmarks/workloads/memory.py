# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of allocations, and of copies between and within devices."""

import torch

from workloads.workload import Call, Workload

KIB = 1024
MIB = 1024 * KIB


def allocation(size: int):
    """Returns the preparation of a workload that allocates `size` bytes and frees them.

    After the first call, the block comes from the cache.
    """

    def prepare(device: torch.device) -> Call:
        return lambda: torch.empty(size, dtype=torch.uint8, device=device)

    return prepare


def copy(size: int, *, source: str, target: str, pinned: bool = False):
    """Returns the preparation of a copy. `source` and `target` are "host", "device" or "other" (a second device).

    `size` is in bytes. On the CPU, all places are host memory. Copies from and to pinned memory are asynchronous.
    """

    def prepare(device: torch.device) -> Call:
        def buffer(place: str) -> torch.Tensor:
            if device.type == "cpu" or place == "host":
                on_host = pinned and device.type != "cpu"
                return torch.empty(size, dtype=torch.uint8, pin_memory=on_host).fill_(1)
            where = torch.device(device.type, 1 if place == "other" else 0)
            return torch.ones(size, dtype=torch.uint8, device=where)

        x, y = buffer(source), buffer(target)
        return lambda: y.copy_(x, non_blocking=pinned)

    return prepare


def copies(size: int, label: str) -> list[Workload]:
    """Returns the workloads of all directions for one size."""
    return [
        Workload(f"copy {label} to the device, pageable", copy(size, source="host", target="device")),
        Workload(f"copy {label} to the device, pinned", copy(size, source="host", target="device", pinned=True)),
        Workload(f"copy {label} to the host, pageable", copy(size, source="device", target="host")),
        Workload(f"copy {label} to the host, pinned", copy(size, source="device", target="host", pinned=True)),
        Workload(f"copy {label} on the device", copy(size, source="device", target="device")),
        Workload(f"copy {label} to another device", copy(size, source="device", target="other")),
    ]


WORKLOADS = [
    Workload("allocate and free 1 KiB", allocation(KIB)),
    Workload("allocate and free 16 MiB", allocation(16 * MIB)),
    *copies(64 * KIB, "64 KiB"),
    *copies(64 * MIB, "64 MiB"),
]
