# SPDX-License-Identifier: BSD-3-Clause
"""Devices, streams, events, generators and memory, with nothing installed but openreg-runtime."""

import time

import torch

import openreg_runtime

stream = torch.Stream("openreg:1")
event = torch.Event("openreg:1")
with stream:
    event.record()
event.synchronize()
print(torch.accelerator.current_accelerator(), torch.openreg.device_count(), event.query())


def check(condition, claim):
    """Prints what was shown; ends the program if it was not."""
    if not condition:
        raise SystemExit(f"WRONG: {claim}")
    print(f"  {claim}")


print("\nDevices")
for index in range(torch.openreg.device_count()):
    properties = torch.openreg.get_device_properties(index)
    print(f"  openreg:{index}: {properties.name}, {properties.total_memory / 2**30:.1f} GiB")
with torch.openreg.device(1):
    check(torch.openreg.current_device() == 1, "a context chooses the current device")
check(torch.openreg.current_device() == 0, "and gives the one before back")

print("\nStreams and events")
PAUSE = 50_000_000  # nanoseconds of work for the device
start, end = (torch.openreg.Event(enable_timing=True) for _ in range(2))
begin = time.perf_counter()
start.record()
torch.openreg._sleep(PAUSE)
end.record()
launched = (time.perf_counter() - begin) * 1e3
end.synchronize()
elapsed = start.elapsed_time(end)
check(elapsed >= PAUSE / 1e6, f"three launches took {launched:.2f} ms, and the device worked for {elapsed:.1f} ms")

print("\nGenerators")
torch.manual_seed(7)
check(torch.openreg.initial_seed() == 7, "torch.manual_seed seeds the devices")
state = torch.openreg.get_rng_state("openreg:1")
check(state.numel() == 16, "a state has 16 bytes: seed and offset")
torch.openreg.manual_seed(8)
unchanged = torch.equal(torch.openreg.get_rng_state("openreg:1"), state)
check(unchanged, "each device has its own generator")

print("\nMemory")
free_bytes, total = torch.openreg.mem_get_info()
before = torch.accelerator.memory_allocated()
storage = torch.UntypedStorage(1 << 20, device="openreg")
check(torch.accelerator.memory_allocated() - before == 1 << 20, "a storage of 1 MiB was allocated")
del storage
check(torch.accelerator.memory_allocated() == before, "and freed")
reserved = torch.openreg.memory_reserved()
check(reserved > 0, f"{reserved >> 20} MiB stay in the cache for the next tensor")
torch.openreg.empty_cache()
check(torch.openreg.memory_reserved() == 0, "until the cache is emptied")
pinned = torch.arange(4.0).pin_memory()
check(pinned.is_pinned(), "host memory can be pinned for asynchronous copies")

print("\nWhat comes with other packages says so")
for use in (
    lambda: torch.ones(2, device="openreg"),
    lambda: torch.openreg.fallback_stats(),
    lambda: torch.autocast("openreg"),
):
    try:
        use()
    except (RuntimeError, AttributeError) as error:
        message = str(error).splitlines()[0]
        check("pip install openreg-" in message, message)
    else:
        print("  (here the package is installed)")

print("\nStreams go on without each other")
HOUR = 3_600_000_000_000  # the process ends before, and drops what is queued
busy, other = torch.openreg.Stream(1), torch.openreg.Stream(1)
with busy:
    torch.openreg._sleep(HOUR)
check(not busy.query(), "a launch returns with an hour of work to do")
free = other.record_event()
free.synchronize()
check(not busy.query(), "another stream does not wait")
other.wait_stream(busy)
waiting = other.record_event()
check(not waiting.query(), "except after wait_stream()")

assert openreg_runtime.DEVICE_TYPE == "openreg"
