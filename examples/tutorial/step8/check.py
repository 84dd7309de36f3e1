# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 8 can do. The exit status is 0 if all of it is right."""

import copy
import ctypes
import sys
import threading

import torch

assert "torch._dynamo" not in sys.modules
assert "torch._inductor.codegen" not in sys.modules
print("import torch leaves the compiler alone")

import torch._inductor.metrics as metrics  # noqa: E402
import torch_pocket  # noqa: E402


def chain(x, y):
    """Five operators."""
    return ((x * 2 + y).relu().sin() * y).exp()


torch.manual_seed(0)
x, y = torch.randn(64, 8, device="pocket"), torch.randn(8, device="pocket")
compiled = torch.compile(chain, fullgraph=True)
torch.testing.assert_close(compiled(x, y), chain(x, y))
assert metrics.generated_kernel_count == 1
torch.testing.assert_close(compiled(x.to("pocket:1"), y.to("pocket:1")), chain(x, y).to("pocket:1"))
print("a chain of operators becomes one kernel, which gives what the operators give, on both devices")


# A task that keeps the queue busy until the program says so. Real kernels never need the GIL; this one is Python.
opened = threading.Event()
gate = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait(60))
scaled = torch.compile(lambda x, number: x * number + 1)
number = torch.tensor(3.0)  # on the host
scaled(x, number)  # compiles
torch.pocket.synchronize()
torch_pocket._C.launch_compiled(ctypes.cast(gate, ctypes.c_void_p).value, 0, [])
result = scaled(x, number)
assert not opened.is_set()
assert not torch.pocket.current_stream().query()
number.fill_(100)
opened.set()
torch.testing.assert_close(result, x * 3 + 1)
print("a compiled call returns before its kernel has run, and keeps the number that it was given")

side = torch.Stream("pocket")
side.wait_stream(torch.pocket.current_stream())
with side:
    z = compiled(compiled(x, y), y)
torch.pocket.current_stream().wait_stream(side)
torch.testing.assert_close(z, chain(chain(x, y), y))
print("kernels run in the order of the stream that is current")

layers = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 1)
eager = torch.nn.Sequential(*layers).to("pocket")
model = copy.deepcopy(eager)
fast = torch.compile(model, fullgraph=True)
losses = [network(x).square().mean() for network in (eager, fast)]
for loss in losses:
    loss.backward()
torch.testing.assert_close(losses[1], losses[0])
for ours, theirs in zip(model.parameters(), eager.parameters(), strict=True):
    torch.testing.assert_close(ours.grad, theirs.grad)
print("a network's loss and gradients are those without the compiler")

flexible = torch.compile(chain, dynamic=True)
flexible(x, y)
with torch.compiler.set_stance("fail_on_recompile"):
    for rows in (3, 17, 500):
        wide = torch.randn(rows, 8, device="pocket")
        torch.testing.assert_close(flexible(wide, y), chain(wide, y))
print("one compilation serves many shapes")

pick = torch.compile(lambda x, rows: x[rows] + 1)
message = ""
try:
    pick(x, torch.tensor([0, 64], device="pocket"))
    torch.pocket.synchronize()
except RuntimeError as error:
    message = str(error)
assert "out of bounds" in message
print("a kernel's error arrives at the next call that waits")
