# SPDX-License-Identifier: BSD-3-Clause
"""A profile of two streams: which kernel ran where, what waited for what, and how busy the device was."""

import tempfile
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

import openreg_ops  # noqa: F401
import openreg_profiler  # noqa: F401  (both load with torch where openreg-autoload is installed)
from openreg_profiler import resources, trace

x = torch.ones(256, 256, device="openreg")
loader = torch.openreg.Stream()
torch.openreg.profiler.name_stream(loader, "loader")
loader.wait_stream(torch.openreg.current_stream())  # which fills x

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1], profile_memory=True) as profiler:
    with torch.openreg.profiler.range("load"), torch.openreg.stream(loader):
        y = x * 2
    torch.openreg.current_stream().wait_stream(loader)
    z = y.exp()

print(profiler.key_averages().table(sort_by="device_time_total", row_limit=5))

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "trace.json")
    profiler.export_chrome_trace(str(path))
    found = trace.read(path)
for item in found.work:
    print(f"{found.streams[item.process, item.track].name:15} {item.name}")
resources.show(resources.measure(found))

names = {found.streams[item.process, item.track].name: item.name for item in found.work}
if names != {"loader": "aten::mul", "default stream": "aten::exp"}:
    raise SystemExit(f"WRONG: the trace has {names}")
