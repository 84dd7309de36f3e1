# SPDX-License-Identifier: BSD-3-Clause
"""A host thread that waits for the device first ends its OpenMP threads, which would slow the device down."""

import pytest
from driver._platform import IS_LINUX
from driver.conftest import PATIENCE

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="elsewhere PyTorch's OpenMP does not count its threads")

WAITS = {
    "device": "torch.accelerator.synchronize()",
    "stream": "torch.accelerator.current_stream().synchronize()",
    "event": "event = torch.Event('openreg'); event.record(); event.synchronize()",
}


@pytest.mark.parametrize("wait", WAITS)
def test_waiting_ends_the_openmp_threads_of_the_host(succeed, wait):
    """In a process of its own, in which no thread of another test ends while threads are counted."""
    succeed(
        f"""
        import os, time, torch, openreg_runtime

        def wait():
            {WAITS[wait]}

        def threads():
            return len(os.listdir("/proc/self/task"))

        def become(number):
            deadline = time.monotonic() + {PATIENCE}
            while threads() != number and time.monotonic() < deadline:
                time.sleep(0.01)  # they end by themselves
            return threads() == number

        torch.set_num_threads(2)
        wait()
        without = threads()
        x = torch.ones(1 << 20)  # filled by two threads
        assert threads() == without + 1, (threads(), without)
        wait()
        assert become(without)
        assert torch.add(x, x).sum() == 2 * x.numel()
        assert threads() == without + 1, (threads(), without)
        wait()
        assert become(without)
        """
    )
