# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 6 can do. The exit status is 0 if all of it is right."""

import multiprocessing
import os
import subprocess
import sys
import time

import torch
import torch_pocket  # noqa: F401 - makes the device known to PyTorch

a = torch.randn(500, 500, device="pocket")
start, end = torch.Event("pocket", enable_timing=True), torch.Event("pocket", enable_timing=True)
begin = time.thread_time()  # of this thread's core, not of a busy machine's clock
start.record()
b = a
for _ in range(20):
    b = (b @ a) * 0.01
end.record()
launched = 1000 * (time.thread_time() - begin)
end.synchronize()
kernels = start.elapsed_time(end)
assert launched < kernels
print(f"launching took {launched:.1f} ms, the kernels {kernels:.1f} ms")

expected = a.cpu()
for _ in range(20):
    expected = (expected @ a.cpu()) * 0.01
torch.testing.assert_close(b.cpu(), expected)
print("their results are right, and memory that was freed early was not reused")

side = torch.Stream("pocket")
ready, done = torch.Event("pocket"), torch.Event("pocket")
x = torch.zeros(1000, device="pocket")
for _ in range(50):
    x += 1
ready.record()
with side:
    assert torch.accelerator.current_stream() == side
    side.wait_event(ready)
    y = x * 2
    x.record_stream(side)
    done.record(side)
with torch.pocket.stream(None):
    assert torch.accelerator.current_stream() != side
torch.accelerator.current_stream().wait_event(done)
assert (y + x).sum().item() == 150_000
assert y.to("pocket:1").add(1).sum().item() == 101_000
print("streams wait for each other's events, and devices for each other's copies")

torch.manual_seed(3)
first = torch.randn(1000, device="pocket")
state = torch.pocket.get_rng_state()
second = torch.randn(1000, device="pocket")
torch.pocket.set_rng_state(state)
assert torch.equal(torch.randn(1000, device="pocket"), second)
torch.manual_seed(3)
assert torch.equal(torch.randn(1000, device="pocket"), first)
assert not torch.equal(first, second)
assert abs(first.mean().item()) < 0.2
own = torch.Generator("pocket:1").manual_seed(5)
assert torch.rand(2, device="pocket:1", generator=own).device == torch.device("pocket:1")
assert torch.randint(3, (100,), device="pocket").unique().tolist() == [0, 1, 2]
state = torch.pocket.get_rng_state()
dropped = torch.nn.functional.dropout(torch.ones(1000, device="pocket"))
torch.pocket.set_rng_state(state)
assert torch.equal(torch.nn.functional.dropout(torch.ones(1000, device="pocket")), dropped)
print("random numbers repeat with the seed and with the state")

pinned = torch.arange(1e6).pin_memory()
assert pinned.is_pinned()
assert not torch.ones(3).is_pinned()
copied = pinned.to("pocket", non_blocking=True)
del pinned
assert copied.sum(dtype=torch.float64).item() == 499_999_500_000
torch.accelerator.empty_host_cache()  # nothing is cached, so nothing happens
print("pinned memory is copied while the host goes on")

flags = torch.ones(2, 2, dtype=torch.bool, device="pocket")
errors = []
products = (lambda: flags @ flags, lambda: flags.float() @ flags.double())
copy = torch.zeros(3, device="pocket").copy_
for call in (*products, flags.relu, flags.uniform_, lambda: flags.byte().fill_(300), lambda: copy(a[0])):
    try:
        call()
    except RuntimeError as error:
        errors.append(str(error))
assert len(errors) == 6
assert not any("A kernel that was launched before" in error for error in errors)
print("a dtype, number or size that a kernel does not take is an error of the call")

zeros = torch.zeros(2, dtype=torch.int, device="pocket")
failed = torch.Event("pocket")


def error_of(wait):
    try:
        wait()
    except RuntimeError as error:
        return str(error)
    return ""


def wait_on_another_stream():
    side.wait_event(failed)
    side.synchronize()


for wait in (failed.synchronize, wait_on_another_stream, lambda: zeros.to("pocket:1").cpu()):
    zeros % zeros  # by zero, as the kernel notices when it runs
    failed.record()
    assert "ZeroDivisionError" in error_of(wait)
    error_of(torch.accelerator.synchronize)  # the host has not waited for the stream itself in each case
for stream in (torch.accelerator.current_stream(), side):
    with stream:
        zeros % zeros
assert "ZeroDivisionError" in error_of(torch.accelerator.synchronize)
assert error_of(torch.accelerator.synchronize) == ""
print("the error of a kernel reaches all that wait for it")

LATE = """
import torch, torch_pocket
x = torch.ones(2, dtype=torch.int, device="pocket")
y = x % torch.zeros_like(x)  # by zero, as the kernel notices when it runs
torch.accelerator.synchronize()
"""
for blocking, line in (("", 5), ("0", 5), ("1", 4)):
    command, environment = [sys.executable, "-c", LATE], {**os.environ, "POCKET_LAUNCH_BLOCKING": blocking}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert f'File "<string>", line {line}, in <module>' in done.stderr, done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "With POCKET_LAUNCH_BLOCKING=1 in the environment" in done.stderr
print("an asynchronous error says how to find the line that launched")

for _ in range(100):
    torch.ones(2_000_000, device="pocket")  # 8 MB each, 800 MB in all, on a device of 256 MB
print("memory in use by queued work is waited for when it is needed")


def child(pipe):
    try:
        torch.empty(3, device="pocket")
    except RuntimeError as error:
        pipe.send(str(error).splitlines()[0])


if "fork" in multiprocessing.get_all_start_methods():
    receiver, sender = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(sender,))
    process.start()
    assert receiver.poll(60), "a forked child hangs"
    print("a forked child is refused:", receiver.recv())
    process.join()
    assert process.exitcode == 0
