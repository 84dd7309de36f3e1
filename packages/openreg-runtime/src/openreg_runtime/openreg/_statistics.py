# SPDX-License-Identifier: BSD-3-Clause
"""Counters of devices, streams and engines. They may be read while tasks run. Times are in nanoseconds."""

from __future__ import annotations

from typing import NamedTuple

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device_index


class DeviceStats(NamedTuple):
    """Counters of a device since the process began or :func:`reset_device`, and its memory."""

    launches: int
    copies: int  # copies and fills
    bytes_copied: int
    busy_nanoseconds: int  # sum over the engines of the time in which each executed tasks of the device
    allocated_bytes: int  # of the driver's allocations
    peak_allocated_bytes: int


class StreamStats(NamedTuple):
    """Counters of a stream since its creation."""

    launches: int
    copies: int  # copies and fills
    bytes_copied: int
    busy_nanoseconds: int  # sum over the engines of the time in which each executed tasks of the stream
    submitted: int  # tasks that were enqueued, including waits, delays and event records
    completed: int  # tasks that are complete


class EngineStats(NamedTuple):
    """Counters of one engine, a unit that executes tasks, since the process began. Each engine serves all devices."""

    name: str
    tasks: int  # kernels, copies, fills and host functions
    busy_nanoseconds: int


def device_stats(device: DeviceLike = None) -> DeviceStats:
    """Returns launches, copies, busy time and memory of a device."""
    return DeviceStats(**_C._get_device_stats(device_index(device)))


def stream_stats(stream: torch.Stream | None = None) -> StreamStats:
    """Returns the counters of a stream, by default of the current stream."""
    chosen = torch.accelerator.current_stream() if stream is None else stream
    return StreamStats(**_C._get_stream_stats(chosen.stream_id, chosen.device_index))


def engine_stats() -> list[EngineStats]:
    """Returns the counters of every engine, summed over all devices."""
    return [EngineStats(**stats) for stats in _C._get_engine_stats()]


def utilization(device: DeviceLike = None) -> int:
    """Returns the percentage of the past second, 0 to 100, in which an engine executed tasks of a device."""
    return _C._get_utilization(device_index(device))
