# SPDX-License-Identifier: BSD-3-Clause
"""The C++ programs in native/ pass, which test what only C++ can reach in the runtime library."""

import pytest
from cmake_runs import run


@pytest.mark.covers("device_allocator.recordStream")
def test_launches_and_memory_hold_what_the_headers_promise(native):
    checks = run(native("checks"))
    assert (checks.returncode, checks.stderr) == (0, "")
    assert checks.stdout == "all checks hold\n"


@pytest.mark.covers(
    "accelerator_hooks.getDeviceFromPtr",
    "accelerator_hooks.getDefaultGenerator",
    "guard.exchangeDevice",
    "guard.uncheckedSetDevice",
    "guard.getDefaultStream",
    "guard.getStreamFromGlobalPool",
    "allocator.raw_deleter",
    "allocator.copy_data",
)
def test_pytorchs_interfaces_answer_in_cpp(native):
    interfaces = run(native("interfaces"))
    assert (interfaces.returncode, interfaces.stderr) == (0, "")
    assert interfaces.stdout == "all interfaces answer\n"
