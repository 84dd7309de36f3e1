# SPDX-License-Identifier: BSD-3-Clause
"""A test suite that knows no device, run on one: what its tests did there, and a bug that only a device shows.

It takes openreg-testing[device]; without a device it says so.
"""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

LIBRARY = """\
import torch

_SEEN = []


def normalize(x):
    _SEEN.append(x)  # the bug: every batch stays on its device
    return x / x.norm()
"""

TESTS = """\
import pytest
import torch
from library import normalize


@pytest.mark.no_fallback
@pytest.mark.memory_limit("1MiB")
def test_length(device):
    x = normalize(torch.ones(4, device=device))
    torch.testing.assert_close(x.cpu(), torch.full((4,), 0.5))


def test_moved(two_devices):
    first, second = two_devices
    assert torch.ones(4, device=first).to(second).device == second


def test_dtype():
    assert normalize(torch.ones(4, dtype=torch.float64)).dtype == torch.float64
"""

BUDGET = """\
import torch

from openreg_testing.budgets import count_launches, launch_budget


def test_two_kernels(device):
    x = torch.ones(4, device=device)
    with launch_budget(2, copies=0):
        x * 2 + 1


def test_as_many_for_any_length(device):
    counts = []
    for length in (4, 400):
        x = torch.ones(length, device=device)
        with count_launches() as count:
            x * 2 + 1
        counts.append((count.launches, count.copies))
    assert counts[0] == counts[1]
"""

GATE = """\
import torch


def test_the_host_does_not_wait(gate):
    x = torch.ones(4, device="openreg")
    gate.close()
    y = x * 2  # returns, although nothing runs
    assert not torch.accelerator.current_stream().query()
    gate.open()
    assert y.sum().item() == 8


def test_the_host_waits(gate):
    x = torch.ones(4, device="openreg")
    gate.close()
    gate.open_soon()  # while the next call waits
    x.sum().item()
    assert gate.is_open
"""

STREAMS = """\
import pytest
import torch


@pytest.mark.schedules(seeds=40)
def test_the_copy_is_waited_for():
    data, copies = torch.ones(1000).pin_memory(), torch.Stream("openreg")
    with copies:
        moved = data.to("openreg", non_blocking=True)
    torch.accelerator.current_stream().wait_stream(copies)
    assert (moved * 2).sum().item() == 2000
"""
WAIT = "    torch.accelerator.current_stream().wait_stream(copies)\n"


def run(*options, tests=TESTS):
    """What pytest says of a suite with these options, and its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "library.py").write_text(LIBRARY)
        Path(folder, "test_library.py").write_text(tests)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        outcome = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return outcome.stdout + outcome.stderr, outcome.returncode


def check(condition, claim):
    """Ends the program if something is not as it should be."""
    if not condition:
        raise SystemExit(f"WRONG: {claim}")


output, status = run("--device", "cpu", "--check-leaks")
print(output.strip())
check(status == 4, "a check of a device makes no sense on the CPU, and that is said")

if find_spec("openreg_runtime") is None or find_spec("openreg_ops") is None:
    print("the rest needs the device: pip install openreg-testing[device]")
    raise SystemExit

output, status = run("--device", "openreg")
print(output[output.index("= device openreg") :])
check(status == 0, "without a check, the bug goes unseen")
check("never launched anything, and passed: 1 of 3 tests" in output, "one test never used the device")
check("test_library.py::test_dtype" in output, "and it is named")

output, status = run("--device", "openreg", "--check-leaks")
print("\n".join(line for line in output.splitlines() if "stay on openreg" in line))
check(status == 1, "the check finds the bug")
check("in library._SEEN" in output, "and names the variable that keeps the tensor")

output, status = run("--device", "openreg", tests=BUDGET + GATE)
check(status == 0, "two operators are two kernels, and the host goes on while the device is held")
output, status = run("--device", "openreg", tests=BUDGET.replace("x * 2 + 1", "x * 2 + 1 - x"))
print("\n".join(line for line in output.splitlines() if "the budget is" in line))
check(status == 1, "a third one exceeds the budget")

output, status = run(tests=STREAMS)
check(status == 0, "the copy is waited for under 40 orders of streams")
output, status = run(tests=STREAMS.replace(WAIT, ""))
print("\n".join(line for line in output.splitlines() if "--schedule-seed=" in line))
check(status == 1, "without the wait some order shows the race, and can be repeated")
