# SPDX-License-Identifier: BSD-3-Clause
"""What devices, streams and engines have done. All of it may be read while they work; times are nanoseconds."""

from __future__ import annotations

from typing import NamedTuple

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device_index


class DeviceStats(NamedTuple):
    """What a device has done since the process started or :func:`reset_device`."""

    launches: int
    copies: int
    bytes_copied: int
    busy_nanoseconds: int
    allocated_bytes: int
    peak_allocated_bytes: int


class StreamStats(NamedTuple):
    """What a stream has done since it was made."""

    launches: int
    copies: int
    bytes_copied: int
    busy_nanoseconds: int  # in which an engine worked for it
    submitted: int  # entries ever enqueued: work, waits, delays, time stamps
    completed: int  # of those, done


class EngineStats(NamedTuple):
    """What one of the engines, which serve all devices, has done since the process started."""

    name: str
    tasks: int  # kernels, copies, fills and host functions
    busy_nanoseconds: int


def device_stats(device: DeviceLike = None) -> DeviceStats:
    """Launches, copies, busy time and memory of a device; may be read while it works."""
    return DeviceStats(**_C._get_device_stats(device_index(device)))


def stream_stats(stream: torch.Stream | None = None) -> StreamStats:
    """Work of a stream, by default of the current one."""
    chosen = torch.accelerator.current_stream() if stream is None else stream
    return StreamStats(**_C._get_stream_stats(chosen.stream_id, chosen.device_index))


def engine_stats() -> list[EngineStats]:
    """Work of every engine, of all devices together."""
    return [EngineStats(**stats) for stats in _C._get_engine_stats()]


def utilization(device: DeviceLike = None) -> int:
    """Percentage of the past second, 0 to 100, in which an engine worked for a device (source: ``torch.cuda``)."""
    return _C._get_utilization(device_index(device))
