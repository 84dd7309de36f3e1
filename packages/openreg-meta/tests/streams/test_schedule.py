# SPDX-License-Identifier: BSD-3-Clause
"""Seeds show and reproduce a missing synchronization. A correct program gives the same numbers for every seed."""

import pytest
from _platform import HAS_FORK

# Each child is the first to use the device, so that each has a schedule of its own.
RUN_SEEDS = """
import os, torch

def two_streams(wait):
    x = torch.zeros(1000, device="openreg")
    torch.openreg.synchronize()
    producer, consumer = torch.Stream("openreg"), torch.Stream("openreg")
    with producer:
        for _ in range(3):
            x.add_(1)
    if wait:
        consumer.wait_stream(producer)
    with consumer:
        y = x * 2
    torch.openreg.synchronize()
    return y.unique().tolist()

def run(seed, wait):
    child = os.fork()
    if child == 0:
        os.environ["OPENREG_SCHEDULE_SEED"] = str(seed)
        os._exit(int(two_streams(wait) == [6.0]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

RIGHT, RACE = 1, 0
"""

SEEDS = """
seen = [run(seed, wait=False) for seed in range(SEEDS)]
assert set(seen) == {RIGHT, RACE}, set(seen)
racy = seen.index(RACE)
assert [run(racy, wait=False) for _ in range(SEEDS // 20)] == [RACE] * (SEEDS // 20)
assert {run(seed, wait=True) for seed in [racy, *range(SEEDS // 4)]} == {RIGHT}
print(seen.count(RACE))
"""

TRAINING = """
import os, torch
from torch import nn

def train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4)).to("openreg")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    copies, pinned = torch.Stream("openreg"), torch.randn(8, 32, 16).pin_memory()
    losses = []
    for batch in pinned:
        with copies:  # the next batch is on its way while the last step runs
            x = batch.to("openreg", non_blocking=True)
        torch.accelerator.current_stream().wait_stream(copies)
        x.record_stream(torch.accelerator.current_stream())
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), torch.arange(32, device="openreg") % 4)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist(), [parameter.tolist() for parameter in model.parameters()]

for seed in (None, *range(1, SEEDS + 1)):
    child = os.fork()
    if child == 0:
        if seed is not None:
            os.environ["OPENREG_SCHEDULE_SEED"] = str(seed)
        print(train(), flush=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

pytestmark = pytest.mark.skipif(not HAS_FORK, reason="gives each schedule a process by fork()")


@pytest.mark.parametrize("seeds", [60, pytest.param(200, marks=pytest.mark.endurance)])
def test_seeds_show_a_missing_wait_and_repeat_it(python, seeds):
    result = python(f"SEEDS = {seeds}\n{RUN_SEEDS}{SEEDS}")
    assert (result.returncode, result.stderr) == (0, "")
    assert seeds / 40 < int(result.stdout) < seeds - seeds / 40


@pytest.mark.parametrize("seeds", [4, pytest.param(8, marks=pytest.mark.endurance)])
def test_training_gives_the_same_numbers_under_every_schedule(python_with_dynamo, seeds):
    result = python_with_dynamo(f"SEEDS = {seeds}\n{TRAINING}")
    assert (result.returncode, result.stderr) == (0, "")
    numbers = result.stdout.splitlines()
    assert len(numbers) == seeds + 1
    assert set(numbers) == {numbers[0]}
