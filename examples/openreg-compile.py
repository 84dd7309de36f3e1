# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile on the device: one kernel for a chain of operators, and a whole training step as one replay."""

import time

import torch

import openreg_compile  # noqa: F401  (it loads with torch where openreg-autoload is installed)


def activation(x, y):
    """Four operators, one kernel."""
    return torch.nn.functional.gelu(x * y + 1).sum(-1)


compiled = torch.compile(activation, fullgraph=True)

try:
    compiled(*torch.ones(2, 64, 128, device="openreg"))
except torch._inductor.exc.InductorError as error:
    if "no C++ compiler works here" not in str(error):
        raise
    print(str(error).partition("\n")[0])  # which says what to install
    raise SystemExit from None

x, y = torch.randn(2, 64, 128, device="openreg")
torch.testing.assert_close(compiled(x, y), activation(x, y))
print(f"multiplication, sum, gelu and reduction: {torch._inductor.metrics.generated_kernel_count} kernel")

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to("openreg")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled_model = torch.compile(model)
data, target = torch.randn(32, 8, device="openreg"), torch.zeros(32, 1, device="openreg")


def step():
    """Forward, backward and optimizer."""
    optimizer.zero_grad(set_to_none=False)
    loss = (compiled_model(data) - target).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(2):  # compiles, and makes what the optimizer keeps
    step()
graph = torch.openreg.Graph()
with torch.openreg.graph(graph):
    loss = step()
graph.replay()

losses = [loss.item()]
for _ in range(3):
    graph.replay()
    losses.append(loss.item())
if losses != sorted(losses, reverse=True):
    raise SystemExit(f"WRONG: replayed steps do not train: {losses}")
print("the loss after each replay of a whole step:", *(f"{one:.4f}" for one in losses))

torch.openreg._sleep(120_000_000_000)  # the device is busy for two minutes, or until the process ends
start = time.perf_counter()
compiled(x, y)
took = time.perf_counter() - start
if torch.openreg.current_stream().query():
    raise SystemExit("WRONG: a compiled call waits for its kernels")
print(f"a call returned after {took * 1e3:.2f} ms, with its kernel still to run")
