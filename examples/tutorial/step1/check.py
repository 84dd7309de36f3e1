# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 1 can do. The exit status is 0 if all of it is right."""

import torch
import torch_pocket  # noqa: F401 - makes the device known to PyTorch

assert torch.accelerator.current_accelerator() == torch.device("pocket")
print("PyTorch's accelerator:", torch.accelerator.current_accelerator())

x = torch.arange(6.0, device="pocket").reshape(2, 3)
assert x.device == torch.device("pocket", 0)
assert x.is_pocket
print("a tensor:", x)

x.t()[0, 1] = 10.0
torch.testing.assert_close(x.cpu(), torch.tensor([[0.0, 1.0, 2.0], [10.0, 4.0, 5.0]]))
torch.testing.assert_close((x @ x.t()).cpu(), x.cpu() @ x.cpu().t())
print("a view shares memory, and computing works")

total = torch.empty(0, device="pocket")
torch.add(x, 1, out=total)
torch.testing.assert_close(total.cpu(), x.cpu() + 1)
print("out= receives a result")

try:
    x + torch.ones(3)
except RuntimeError as error:
    print("mixed devices are refused:", str(error).splitlines()[0])
else:
    raise AssertionError("a CPU tensor was accepted")

torch.manual_seed(0)
data = torch.randn(64, 4)
target = data.sum(dim=1, keepdim=True)
losses = {}
for device in ("cpu", "pocket"):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(50):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data.to(device)), target.to(device))
        loss.backward()
        optimizer.step()
    losses[device] = loss.item()
assert losses["pocket"] < 0.1
assert abs(losses["pocket"] - losses["cpu"]) < 1e-5
print(f"a network trains: loss {losses['pocket']:.4f}, on the CPU {losses['cpu']:.4f}")
