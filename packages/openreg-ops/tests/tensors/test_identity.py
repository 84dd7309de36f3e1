# SPDX-License-Identifier: BSD-3-Clause
"""Parameters, data and storages keep their identity when tensors move, and record_stream() protects memory."""

import pytest
import torch
from parity import DEVICE


@pytest.mark.covers("registration.aten::_has_compatible_shallow_copy_type")
def test_parameters_stay_the_same_objects():
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    net[1].weight = net[0].weight
    before = list(net.parameters())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.to(DEVICE)
    after = list(net.parameters())
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert net[1].weight is net[0].weight
    assert net[0].weight.device.type == DEVICE
    net(torch.ones(2, 3, device=DEVICE)).sum().backward()
    value = net[0].weight.detach().clone()
    optimizer.step()
    assert not net[0].weight.detach().cpu().equal(value.cpu())
    net.cpu()
    assert net[1].weight is net[0].weight is before[0]
    assert net[0].weight.device.type == "cpu"


def test_data_may_be_set_across_devices():
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.data = parameter.data.to(DEVICE) * 2
    assert parameter.device.type == DEVICE
    assert (parameter * 2).sum().item() == 12


def test_the_same_storage_is_shared_after_a_move():
    x = torch.zeros(4)
    module = torch.nn.Module()
    module.a, module.b = torch.nn.Buffer(x), torch.nn.Buffer(x)
    module.to(DEVICE)
    assert module.a.device.type == module.b.device.type == DEVICE


@pytest.mark.covers("device_allocator.recordStream", "registration.aten::record_stream")
def test_a_recorded_stream_keeps_memory_from_being_reused(gate):
    stream = torch.openreg.Stream()
    for record in (True, False):
        x = torch.ones(1 << 16, device=DEVICE)
        address = x.data_ptr()
        torch.openreg.synchronize()
        with torch.openreg.stream(stream):
            gate.close()
            y = x + 1
        if record:
            x.record_stream(stream)
        del x
        again = torch.zeros(1 << 16, device=DEVICE)  # openreg-sanitizer: ignore[reuse]
        assert (again.data_ptr() != address) == record
        gate.open()
        torch.openreg.synchronize()
        if record:
            assert y.sum().item() == 2 << 16
        del again, y
        torch.openreg.empty_cache()
