# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 3 can do. The exit status is 0 if all of it is right."""

import torch
import torch_pocket  # noqa: F401 - makes the device known to PyTorch

x = torch.arange(6.0, device="pocket").reshape(2, 3)
x.t()[0, 1] = 10.0
torch.testing.assert_close(x.cpu(), torch.tensor([[0.0, 1.0, 2.0], [10.0, 4.0, 5.0]]))
windows = x.flatten().unfold(0, 2, 2)
windows[0, 0] = 7.0
assert x[0, 0].item() == 7.0
print("views share memory:", x)

y = x.to("pocket:1")
assert y.device == torch.device("pocket", 1)
torch.testing.assert_close(y.cpu(), x.cpu())
assert torch.accelerator.memory_allocated(1) == x.nbytes
print("tensors live on both devices")

total = torch.empty(0, device="pocket")
torch.add(x, 1, out=total)
torch.testing.assert_close(total.cpu(), x.cpu() + 1)
z = torch.complex(x, -x)
torch.testing.assert_close(z.conj().cpu(), z.cpu().conj())
torch.testing.assert_close(torch.linalg.svdvals(x).cpu(), torch.linalg.svdvals(x.cpu()))
torch.pocket.reset_fallback_stats()
torch.testing.assert_close(x.sin().cpu(), x.cpu().sin())
assert {name: count.calls for name, count in torch.pocket.fallback_stats().items()} == {"aten::sin.out": 1}
print("what has no kernel is computed on the CPU, and counted")


def refused(what, work, message):
    said = "nothing"
    try:
        work()
    except RuntimeError as error:
        said = str(error).splitlines()[0]
    assert message in said, f"{what}: {said}"
    print(f"{what} is refused:", said)


refused("a device that is not there", lambda: torch.ones(2, device="pocket:7"), "there is no device pocket:7")
refused("a mix of devices", lambda: x + y, "Expected all tensors to be on the same device")
z = torch.arange(4.0, device="pocket")
refused("a copy onto a part of itself", lambda: z[1:].copy_(z[:-1]), "refer to a single memory location")
torch.pocket.refuse_fallbacks()
refused("a fallback", lambda: x.sin(), "aten::sin")
torch.pocket.refuse_fallbacks(False)

torch.manual_seed(0)
data = torch.randn(64, 4)
target = data.sum(dim=1, keepdim=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to("pocket")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(50):
    optimizer.zero_grad()
    loss = (model(data.to("pocket")) - target.to("pocket")).square().mean()
    loss.backward()
    optimizer.step()
assert loss.item() < 0.1
print(f"a network trains: loss {loss.item():.4f}")
