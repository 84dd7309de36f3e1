# SPDX-License-Identifier: BSD-3-Clause
"""Tools on PyTorch's GPU trace get the device's events, streams, allocations and synchronizing calls."""

import pytest

TRACED = """
import torch, openreg_runtime
from torch.openreg import _gpu_trace as trace
seen = []
for name in ("event_creation", "event_deletion", "event_record", "event_wait", "memory_allocation",
             "memory_deallocation", "stream_creation", "device_synchronization", "stream_synchronization",
             "event_synchronization"):
    getattr(trace, "register_callback_for_" + name)(lambda *ids, name=name: seen.append((name, *ids)))
torch.openreg.synchronize()
assert seen == []  # the trace is off
torch._C._activate_gpu_trace()
stream = torch.openreg.Stream()
storage = torch.UntypedStorage(64, device="openreg")
address = storage.data_ptr()
event = torch.openreg.Event()
event.record(stream)
torch.openreg.current_stream().wait_event(event)
event.synchronize()
stream.synchronize()
torch.openreg.synchronize()
del storage, event
names = [name for name, *_ in seen]
assert set(names) == {
    "event_creation", "event_deletion", "event_record", "event_wait", "memory_allocation", "memory_deallocation",
    "stream_creation", "device_synchronization", "stream_synchronization", "event_synchronization"}, names
assert ("memory_allocation", address) in seen and ("memory_deallocation", address) in seen
(created,) = [ids for name, *ids in seen if name == "event_creation"]
(record,) = [ids for name, *ids in seen if name == "event_record"]
assert record[0] == created[0] and record[1] == stream.stream_id
print("traced")
"""


@pytest.mark.every_subset
def test_the_trace_has_what_the_device_does(succeed):
    assert succeed(TRACED).output == "traced\n"
