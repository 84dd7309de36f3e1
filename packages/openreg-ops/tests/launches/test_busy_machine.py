# SPDX-License-Identifier: BSD-3-Clause
"""On a busy machine, the OpenMP threads of kernels that wait sleep; on an idle one they spin."""

from pathlib import Path

import pytest
from _platform import IS_LINUX


def counts_waiting():
    """Returns whether Linux was compiled to count the time that a thread runs."""
    path = Path("/proc/self/schedstat")
    return path.exists() and path.read_text().split()[0] != "0"


pytestmark = [
    pytest.mark.skipif(not IS_LINUX, reason="elsewhere PyTorch's OpenMP does not count its threads"),
    pytest.mark.skipif(IS_LINUX and not counts_waiting(), reason="the system does not count how long threads wait"),
]

# The team of idle threads, by which those of kernels sleep, exists while the engine's thread waits for cores.
SCRIPT = """
import os, subprocess, sys, time
import torch, openreg_ops

PATIENCE = 120  # seconds; what takes longer never comes
TASKS = "/proc/self/task"
x = torch.linspace(-1, 1, 1 << 17, device="openreg")
expected = x.cpu().tanh()


def run_kernels():
    for _ in range(100):
        y = x.tanh()
    torch.accelerator.synchronize()
    return y


def tasks(name):
    found = []
    for task in os.listdir(TASKS):
        try:
            with open(f"{TASKS}/{task}/comm") as file:
                found += [task] if file.read().strip() == name else []
        except OSError:
            pass  # it has ended meanwhile
    return found


def threads_sleep():
    return bool(tasks("openreg_idle"))


def share_of_waiting(engine, before):
    with open(f"{TASKS}/{engine}/schedstat") as file:
        ran, waited, _ = map(int, file.read().split())
    return (ran, waited), (waited - before[1]) / max(1, ran - before[0] + waited - before[1])


assert torch.equal(run_kernels().cpu(), expected)
engine = tasks("openreg_compute")[0]
cores = len(os.sched_getaffinity(0))
others = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(2 * cores)]
try:
    deadline = time.monotonic() + PATIENCE
    while not threads_sleep():
        assert time.monotonic() < deadline, "the threads of kernels spin on a busy machine"
        assert torch.equal(run_kernels().cpu(), expected)
finally:
    for other in others:
        other.kill()
        other.wait()

# Threads sleep for up to 3.2 s before they are tried spinning again. Other programs may keep the cores busy for longer.
deadline, quiet, times = time.monotonic() + 30, 0, (0, 0)
while quiet < 20 and time.monotonic() < deadline:
    until = time.monotonic() + 0.2  # longer than an interval of the measurement
    while time.monotonic() < until:
        run_kernels()
    times, share = share_of_waiting(engine, times)
    quiet = quiet + 1 if share < 0.2 else 0  # of a third, above which threads sleep
assert quiet < 20 or not threads_sleep(), "the threads of kernels sleep on an idle machine"
print("idle again" if quiet == 20 else "still busy")
"""


def test_the_threads_of_kernels_sleep_only_while_other_programs_keep_the_cores_busy(run_python):
    result = run_python(SCRIPT, OPENREG_NUM_THREADS="2")
    assert result.returncode == 0, result.stderr[-3000:]
    if result.stdout.strip() == "still busy":
        pytest.skip("the machine stayed busy, so that only the first half was seen")
    assert result.stdout.strip() == "idle again"
