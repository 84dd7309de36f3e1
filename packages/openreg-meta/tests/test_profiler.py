# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's profilers ask of the device's module."""

import torch
from torch.autograd import profiler


def test_the_profiler_waits_for_the_device_before_it_stops(gate):
    with profiler.profile(use_device="openreg"):
        gate.close()
        assert not torch.openreg.current_stream().query()
        gate.open_soon()
    assert gate.is_open
    assert torch.openreg.current_stream().query()
