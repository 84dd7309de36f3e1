# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C ends a program that launches faster than the device computes."""

import pytest
from _platform import IS_WINDOWS

# The work in a full queue would take minutes.
ENDLESS = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test runner in the background may have it ignored
import torch
a = torch.ones(1024, 1024, device="openreg")
def tell():
    while (stats := torch.openreg.stream_stats()).submitted - stats.completed < 16384 - 1:  # openreg.h
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=tell, daemon=True).start()
while True:
    a @ a
"""


@pytest.mark.skipif(IS_WINDOWS, reason="Windows sends Ctrl-C to a console, not to a process")
def test_ctrl_c_ends_a_program_whose_queue_is_full(python):
    result = python(ENDLESS, finalize=True)  # without Ctrl-C it never ends
    assert result.stderr.rstrip().endswith("KeyboardInterrupt")
