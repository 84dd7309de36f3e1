# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's profilers ask of the device: to wait for it, and to be told of its memory."""

import torch
from torch.autograd import profiler


def test_the_profiler_waits_for_the_device_before_it_stops():
    with profiler.profile(use_device="openreg"):
        torch.openreg._sleep(60_000_000)
        assert not torch.openreg.current_stream().query()
    assert torch.openreg.current_stream().query()


def test_the_profiler_is_told_of_memory():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        x = torch.empty(1 << 20, device="openreg")
        del x
    usage = {event.name: event.device_memory_usage for event in profile.events()}
    assert usage["aten::empty"] == 4 << 20
    assert usage["[memory]"] == -(4 << 20)
