# SPDX-License-Identifier: BSD-3-Clause
"""The observer counts each launch once while it is active, and waits for the launches that it has counted."""

import threading

import pytest
import torch

from openreg_example import LaunchCounter

pytestmark = pytest.mark.every_subset


@pytest.fixture
def x():
    x = torch.arange(8.0).to("openreg")
    torch.openreg.synchronize()
    return x


def test_launches_are_counted_until_the_end_of_the_block(x):
    with LaunchCounter() as counter:
        assert (counter.launched, counter.completed) == (0, 0)
        for _ in range(3):
            torch.openreg.example_scale(x, 2)
    torch.openreg.example_scale(x, 2)
    torch.openreg.synchronize()
    assert (counter.launched, counter.completed) == (3, 3)
    counter.stop()


def test_the_end_waits_for_what_was_counted(x):
    counter = LaunchCounter()
    torch.openreg._sleep(20)
    result = torch.openreg.example_scale(x, 2)
    counter.stop()
    assert counter.launched == counter.completed == 1
    assert torch.openreg.current_stream().query()
    assert result.cpu().tolist() == [2 * item for item in range(8)]


def test_pauses_and_copies_are_no_launches(x):
    host = torch.empty(8)
    with LaunchCounter() as counter:
        torch.openreg._sleep(1)
        host.copy_(x)
    assert counter.launched == 0


def test_counters_count_beside_each_other(x):
    outer = LaunchCounter()
    torch.openreg.example_scale(x, 2)
    inner = LaunchCounter()
    torch.openreg.example_scale(x, 2)
    inner.stop()
    torch.openreg.example_scale(x, 2)
    outer.stop()
    assert (outer.launched, inner.launched) == (3, 1)


def test_all_threads_and_devices_count(x):
    y = x.to("openreg:1")
    torch.openreg.synchronize(1)
    threads = [threading.Thread(target=torch.openreg.example_scale, args=(item, 2)) for item in (x, y)]
    with LaunchCounter() as counter:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counter.completed == 2


def test_a_counter_that_is_never_stopped_ends_with_its_last_name(x):
    counter = LaunchCounter()
    torch.openreg._sleep(5)
    torch.openreg.example_scale(x, 2)
    del counter
    assert torch.openreg.current_stream().query()
