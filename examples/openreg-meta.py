# SPDX-License-Identifier: BSD-3-Clause
"""The complete backend: what every part brings, in a few lines each."""

import sys

import torch

import torch_openreg

x = torch.arange(4.0, device="openreg")
print(torch_openreg.__version__, (x * 2).sum().item())


def check(condition, claim):
    """Prints what was shown; ends the program if it was not."""
    if not condition:
        raise SystemExit(f"WRONG: {claim}")
    print(f"  {claim}")


print("\nruntime")
check(torch_openreg.openreg is torch.openreg, "torch_openreg.openreg is torch.openreg")
check(torch.openreg.device_count() >= 1, f"{torch.openreg.device_count()} devices")
check(x.is_openreg, f"a tensor lives on {x.device}")

print("\nops")
a, b = torch.rand(8, 8), torch.rand(8, 8)
check(torch.allclose((a.openreg() @ b.openreg()).cpu(), a @ b), "a product equals the CPU's")
model = torch.nn.Linear(8, 1).to("openreg")
model(a.openreg()).sum().backward()
check(model.weight.grad.is_openreg, "gradients are computed on the device")

print("\ngraphs")
features = torch.rand(64, 8, device="openreg")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train_step():
    """One step of gradient descent; gives the loss, which stays on the device."""
    optimizer.zero_grad(set_to_none=False)
    loss = model(features).square().mean()
    loss.backward()
    optimizer.step()
    return loss


train_step()
step = torch.openreg.Graph()
with torch.openreg.graph(step):
    loss = train_step()  # recorded, not run
losses = []
for _ in range(3):
    step.replay()
    losses.append(loss.item())
check(losses[0] > losses[1] > losses[2] > 0, "a captured training step trains at each replay")

print("\namp")
with torch.autocast("openreg", dtype=torch.bfloat16):
    check((a.openreg() @ b.openreg()).dtype is torch.bfloat16, "a product runs in bfloat16")
    check(torch.asin(a.openreg()).dtype is torch.float32, "an arc sine runs in float32")

print("\nautoload")
check("openreg_autoload" in sys.modules, "`import torch` alone would have been enough")
