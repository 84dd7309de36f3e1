# SPDX-License-Identifier: BSD-3-Clause
"""The counters of devices, streams and engines are right, also while the device works."""

from __future__ import annotations

import ctypes
import time

import pytest

from .conftest import MIB, Gate
from .device_api import Api


def test_a_stream_counts_its_own_work(api: Api) -> None:
    busy, idle = api.stream(), api.stream()
    block = api.malloc(4096)
    for _ in range(3):
        api.launch(busy, lambda: None)
    api.call("orMemsetAsync", block, 0, 4096, busy)
    api.synchronize_stream(busy)
    stats = api.stream_stats(busy)
    assert (stats.launches, stats.copies, stats.bytes_copied) == (3, 1, 4096)
    assert (stats.submitted, stats.completed) == (4, 4)
    assert stats.busy_nanoseconds > 0
    assert bytes(api.stream_stats(idle)) == bytes(48)
    api.free(block)
    api.destroy_stream(busy)
    api.destroy_stream(idle)


def test_a_new_stream_starts_at_zero_where_an_old_one_was(api: Api) -> None:
    old = api.stream()
    api.launch(old, lambda: None)
    api.synchronize_stream(old)
    api.destroy_stream(old)
    new = api.stream()
    assert bytes(api.stream_stats(new)) == bytes(48)
    api.destroy_stream(new)


def test_busy_time_grows_while_a_kernel_runs(api: Api, gate: Gate) -> None:
    def busy() -> tuple[int, ...]:
        counts = (api.stats(0), api.stream_stats(None), api.engine_stats()["compute"])
        return tuple(count.busy_nanoseconds for count in counts)

    gate.close(None)
    before = busy()
    after = busy()
    gate.open()
    assert all(new > old for old, new in zip(before, after, strict=True))


@pytest.mark.endurance  # a share of a second, which a busy machine stretches
def test_utilization_is_the_busy_share_of_the_past_second(api: Api, gate: Gate) -> None:
    api.synchronize()
    time.sleep(1.1)  # what other tests did is older then
    assert api.utilization(0) == 0
    before = time.monotonic()
    gate.close(None)
    begun = time.monotonic()
    time.sleep(0.5)  # what has to be counted: utilization is a share of time
    asked = time.monotonic()
    half = api.utilization(0)
    answered = time.monotonic()
    assert api.utilization(1) == 0
    time.sleep(0.7)
    full = api.utilization(0)
    gate.open()
    # The share is taken of the past second, less up to a thirty-second of it. A slow machine shifts both bounds.
    assert min(100 * (asked - begun), 96) - 2 <= half <= min(100 * (answered - before), 100) + 2
    assert full >= 95


def test_large_copies_are_the_copy_engines_work(api: Api) -> None:
    block = api.malloc(4 * MIB)
    host = api.malloc_host(4 * MIB)
    before = {name: stats.tasks for name, stats in api.engine_stats().items()}
    api.copy_async(block, host, 4 * MIB, None)
    api.launch(None, lambda: None)
    api.synchronize()
    after = {name: stats.tasks for name, stats in api.engine_stats().items()}
    assert {name: after[name] - before[name] for name in after} == {"compute": 1, "copy": 1}
    api.free(block)
    api.free_host(host)


def test_a_short_copy_that_the_host_waits_for_does_not_wait_for_kernels_of_other_streams(api: Api, gate: Gate) -> None:
    api.set_device(1)
    block, host, idle = api.malloc(4096), (ctypes.c_char * 4096)(), api.stream()
    api.set_device(0)
    before = api.engine_stats()["copy"].tasks
    gate.close(None)
    api.copy_async(host, block, 4096, idle)  # blocks, because the memory is pageable
    assert api.engine_stats()["copy"].tasks == before + 1
    assert api.device() == 0
    gate.open()
    api.destroy_stream(idle)
    api.free(block)
