# SPDX-License-Identifier: BSD-3-Clause
"""Python reads the counters of devices, streams and engines. The tests in driver/ check the counting itself."""

import time

import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")


@pytest.mark.covers("module.stream_stats")
def test_a_stream_counts_its_work(driver):
    stream = openreg.Stream(1)
    assert openreg.stream_stats(stream) == (0, 0, 0, 0, 0, 0)
    driver.launch(stream.native_handle, lambda: None)
    stream.synchronize()
    stats = openreg.stream_stats(stream)
    assert (stats.launches, stats.copies, stats.submitted, stats.completed) == (1, 0, 1, 1)
    assert stats.busy_nanoseconds > 0
    with openreg.stream(stream):
        assert openreg.stream_stats() == stats
    assert openreg.stream_stats(torch.Stream("openreg:1")).launches == 0


@pytest.mark.covers("module.stream_stats")
def test_work_that_waits_is_submitted_and_not_completed(gate):
    stream = openreg.Stream()
    with openreg.stream(stream):
        gate.close()
        stats = openreg.stream_stats()
    assert stats.submitted > stats.completed == 0


@pytest.mark.covers("module.engine_stats")
def test_the_engines_count_the_work_of_all_devices(driver):
    before = {engine.name: engine for engine in openreg.engine_stats()}
    assert "compute" in before
    for device in range(2):
        driver.launch(openreg.default_stream(device).native_handle, lambda: None)
        openreg.synchronize(device)
    after = {engine.name: engine for engine in openreg.engine_stats()}
    assert after["compute"].tasks == before["compute"].tasks + 2
    assert after["compute"].busy_nanoseconds - before["compute"].busy_nanoseconds > 0


@pytest.mark.covers("module.utilization")
@pytest.mark.endurance  # a share of a second, which a busy machine stretches
def test_utilization_is_a_percentage_of_the_past_second(driver):
    times = []

    def kernel():
        times.append(time.monotonic())
        time.sleep(0.3)  # what has to be counted
        times.append(time.monotonic())

    time.sleep(1.1)  # what other tests did is older then
    before = time.monotonic()
    driver.launch(openreg.default_stream(1).native_handle, kernel)
    openreg.synchronize(1)
    after = time.monotonic()
    percentage = openreg.utilization(1)
    answered = time.monotonic()
    assert openreg.utilization(torch.device("openreg:0")) == 0
    # The share is taken of the past second, less up to a thirty-second of it. A slow machine shifts both bounds.
    begun, ended = times
    least = ended - max(begun, answered - 0.96)
    most = after - max(before, after - 1)
    assert 100 * least - 2 <= percentage <= 100 * most + 2
