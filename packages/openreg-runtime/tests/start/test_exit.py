# SPDX-License-Identifier: BSD-3-Clause
"""A process ends at once and without output, whatever is enqueued or alive."""

import pytest

SCRIPTS = {
    "queued work": """
        for device in range(2):
            with torch.openreg.device(device):
                for _ in range(1000):
                    torch.openreg._sleep(HOUR)
    """,
    "a wait of centuries": "torch.openreg._sleep(2**64 - 1)",
    "work that waits for other work": """
        first, second = torch.openreg.Stream(0), torch.openreg.Stream(1)
        with torch.openreg.stream(first):
            torch.openreg._sleep(HOUR)
        second.wait_stream(first)
        torch.UntypedStorage(1000, device="openreg:1").resize_(2000)
    """,
    "live objects": """
        import builtins
        builtins.keep = (
            torch.UntypedStorage(1000, device="openreg:1"), torch.ones(3).pin_memory(),
            torch.openreg.Stream(), torch.openreg.Event().record(), torch.Generator("openreg"),
        )
        builtins.event = torch.Event("openreg", enable_timing=True)
        builtins.event.record()
    """,
    "a thread in synchronize()": """
        torch.openreg._sleep(HOUR)
        in_thread(torch.openreg.synchronize)
    """,
    "a thread that waits in one of PyTorch's own methods": """
        stream, event = torch.Stream("openreg"), torch.Event("openreg")
        with stream:
            torch.openreg._sleep(HOUR)
        event.record(stream)
        in_thread(stream.synchronize)
        in_thread(event.synchronize)
    """,
    "a thread that finds a full queue": """
        torch.openreg._sleep(HOUR)
        def fill():
            while True:
                torch.openreg._sleep(1)
        in_thread(fill)
        while torch.openreg.stream_stats().submitted < 16384:  # openreg.h
            time.sleep(0.001)
    """,
    "a thread in empty_cache()": """
        torch.UntypedStorage(1000, device="openreg")
        torch.openreg._sleep(HOUR)
        in_thread(torch.openreg.empty_cache)
    """,
    "a thread in reset_device()": """
        torch.openreg._sleep(HOUR)
        in_thread(torch.openreg.reset_device)
    """,
    "a registered call at exit": """
        import atexit
        atexit.register(lambda: torch.UntypedStorage(64, device="openreg").resize_(128))
    """,
}

PREAMBLE = """
import sys, threading, time, torch, openreg_runtime
HOUR = 3_600_000_000_000  # nanoseconds
def in_thread(function):
    threading.Thread(target=function, daemon=True).start()
    time.sleep(0.1)  # likely it is in the call by now; the process ends as well if it is not
"""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_process_ends_at_once_with(succeed, name):
    lines = SCRIPTS[name].strip().splitlines()
    body = "\n".join(line.removeprefix("        ") for line in lines)
    succeed(PREAMBLE + body, finalize=True)


def test_a_process_that_used_the_device_waits_at_exit(succeed):
    """PyTorch's threads of a backward pass may still run then."""
    outcome = succeed(
        """
        import time, torch, openreg_runtime
        torch.openreg.init()
        time.sleep = lambda seconds: print(seconds > 0)
        """,
        finalize=True,
    )
    assert outcome.output.split() == ["True"]
