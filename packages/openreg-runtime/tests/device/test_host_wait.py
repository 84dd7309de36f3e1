# SPDX-License-Identifier: BSD-3-Clause
"""A host thread that waits for the device first ends its OpenMP threads, which would slow the device down."""

import time
from pathlib import Path

import pytest
import torch
from driver._platform import IS_LINUX

TASKS = Path("/proc/self/task")

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="elsewhere PyTorch's OpenMP does not count its threads")


@pytest.fixture
def two_threads():
    number = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(number)


def threads() -> int:
    return len(list(TASKS.iterdir()))


def wait_for_stream():
    torch.accelerator.current_stream().synchronize()


def wait_for_event():
    event = torch.Event("openreg")
    event.record()
    event.synchronize()


def become(number: int) -> bool:
    """Whether there are soon that many threads: they end by themselves."""
    deadline = time.monotonic() + 60
    while threads() != number and time.monotonic() < deadline:
        time.sleep(0.01)
    return threads() == number


@pytest.mark.parametrize("wait", [torch.accelerator.synchronize, wait_for_stream, wait_for_event])
def test_waiting_ends_the_openmp_threads_of_the_host(wait, two_threads):
    wait()
    without = threads()
    x = torch.ones(1 << 20)  # filled by two threads
    assert threads() == without + 1
    wait()
    assert become(without)
    assert torch.add(x, x).sum() == 2 * x.numel()
    assert threads() == without + 1
    wait()
    assert become(without)
