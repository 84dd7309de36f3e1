# SPDX-License-Identifier: BSD-3-Clause
"""Tensors on the device: operators, asynchronous launches and the fallback to the CPU."""

import time

import torch

import openreg_ops

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="openreg")
y = x + 2
print(y, y.device)
print(y.cpu())


def check(condition, claim):
    """Prints what was shown; ends the program if it was not."""
    if not condition:
        raise SystemExit(f"WRONG: {claim}")
    print(f"  {claim}")


print("\nOperators")
a, b = torch.rand(64, 64), torch.rand(64, 64)
check(torch.allclose((a.openreg() @ b.openreg()).cpu(), a @ b), "a product equals the CPU's")
weight = torch.rand(4, 3, 3, 3, device="openreg", requires_grad=True)
image = torch.rand(1, 3, 8, 8, device="openreg")
torch.nn.functional.conv2d(image, weight).sum().backward()
check(weight.grad.is_openreg, "a convolution has a gradient, on the device")
torch.manual_seed(0)
first = torch.randn(3, device="openreg").cpu()
torch.manual_seed(0)
check(torch.equal(torch.randn(3, device="openreg").cpu(), first), "random numbers repeat by seed")

print("\nLaunches are asynchronous")
torch.openreg.synchronize()
PAUSE = 100_000_000  # nanoseconds of work, before the next kernel may run
begin = time.perf_counter()
torch.openreg._sleep(PAUSE)
z = y * 3
returned = (time.perf_counter() - begin) * 1e3
total = z.sum().item()
waited = (time.perf_counter() - begin) * 1e3
check(total == 54 and waited >= PAUSE / 1e6, f"y * 3 took {returned:.2f} ms, reading its sum {waited:.0f} ms")

print("\nAn operator that only the CPU has a kernel for runs there, and is counted")
library = torch.library.Library("openreg_example", "DEF")
library.define("cube(Tensor x) -> Tensor")
library.impl("cube", lambda x: x * x * x, "CPU")
torch.openreg.reset_fallback_stats()
cubes = torch.ops.openreg_example.cube(a.openreg())
check(torch.equal(cubes.cpu(), a * a * a), f"the result is on {cubes.device}")
stats = torch.openreg.fallback_stats()
check(stats["openreg_example::cube"].calls == 1, "torch.openreg.fallback_stats() knows of it")
for name, count in stats.items():
    print(f"  {name}: {count.calls} call, {count.bytes} bytes, {count.seconds * 1e3:.2f} ms")
try:
    with torch.openreg.fallback_mode("error"):
        torch.ops.openreg_example.cube(a.openreg())
except RuntimeError as error:
    print(f"  refused where it must not happen: {str(error).splitlines()[0]}")
else:
    raise SystemExit("WRONG: the fallback was not refused")

assert torch.openreg.fallback_stats is openreg_ops.fallback_stats
