# SPDX-License-Identifier: BSD-3-Clause
"""A profile of the device costs little time, and a long one loses no task."""

import gc
import statistics
import time
from itertools import pairwise

import pytest
import torch
from profiles import BOTH
from torch.profiler import ProfilerActivity, profile

KERNELS = 1_000_000


def of_device(profiler):
    """Tasks in the results, without the Python objects that PyTorch makes of all of them."""
    kind = torch._C._autograd.DeviceType.PrivateUse1
    events = profiler.profiler.kineto_results.events()
    return [event for event in events if event.device_type() == kind]


def test_ten_thousand_kernels_are_all_there():
    x = torch.ones(4, device="openreg")
    torch.openreg.synchronize()
    with profile(activities=list(BOTH)) as profiler:
        for _ in range(10_000):
            x.add_(1)
    assert len(of_device(profiler)) == 10_000


@pytest.mark.endurance
def test_a_million_kernels_in_one_profile():
    x = torch.ones(4, device="openreg")
    torch.openreg.synchronize()
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        for _ in range(KERNELS):
            x.add_(1)
    events = of_device(profiler)
    assert len(events) == KERNELS
    assert all(before.end_ns() <= after.start_ns() for before, after in pairwise(events))


def step_time(activities, step, repeats=200):
    """The median time of a step in a profile, in seconds."""
    times = []
    with profile(activities=list(activities)) if activities else Unprofiled():
        for _ in range(repeats):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


class Unprofiled:
    """In place of a profile."""

    def __enter__(self):
        gc.disable()

    def __exit__(self, *_):
        gc.enable()


@pytest.mark.endurance
def test_host_and_device_together_cost_little_more_than_the_host_alone():
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)]).to("openreg")
    data = torch.ones(16, 64, device="openreg")

    def step():
        model.zero_grad()
        model(data).square().mean().backward()
        torch.openreg.synchronize()

    for _ in range(20):
        step()
    ratios = []
    for _ in range(5):
        none = step_time((), step)
        host = step_time([ProfilerActivity.CPU], step)
        both = step_time(BOTH, step)
        ratios.append(both / host)
        print(f"without {none * 1e3:.3f} ms, host {host * 1e3:.3f} ms, host and device {both * 1e3:.3f} ms")
    assert statistics.median(ratios) <= 1.3, ratios
