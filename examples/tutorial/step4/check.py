# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 4 can do. The exit status is 0 if all of it is right."""

import torch
import torch_pocket  # noqa: F401 - makes the device known to PyTorch

OURS = ["aten::relu", "aten::add.out", "aten::mm.out", "aten::addmm.out", "aten::mul.out", "aten::fill_.Scalar"]
for name in OURS:
    assert torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1"), name
print("operators with a kernel of their own:", ", ".join(OURS))

x, y = torch.randn(4, 3), torch.randn(4, 3)
a, b = x.to("pocket"), y.to("pocket")
for what, work in {
    "relu": lambda p, q: torch.relu(p.t()),
    "relu_": lambda p, q: p.clone().relu_(),
    "add": lambda p, q: torch.add(p, q, alpha=2),
    "add a row": lambda p, q: p + q[0],
    "add a number": lambda p, q: p + 2,
    "add_": lambda p, q: p.clone().add_(q),
    "multiply": lambda p, q: p * q.double(),
    "matrix product": lambda p, q: p @ q.t(),
    "linear": lambda p, q: torch.nn.functional.linear(p, q, q[:, 0]),
    "fill": lambda p, q: p.clone().t().fill_(7),
    "zeros": lambda p, q: torch.zeros_like(p),
}.items():
    torch.testing.assert_close(work(a, b).cpu(), work(x, y), msg=what)
print("their results are those of the CPU")

out = torch.empty(0, device="pocket")
torch.mm(a, b.t(), out=out)
torch.testing.assert_close(out.cpu(), x @ y.t())
print("out= is resized")


def refused(what, work, message):
    said = "nothing"
    try:
        work()
    except RuntimeError as error:
        said = str(error).splitlines()[0]
    assert message in said, f"{what}: {said}"
    print(f"{what} is refused:", said)


line = torch.arange(5.0, device="pocket")
refused("an output that overlaps an input", lambda: line[1:].add_(line[:-1]), "single memory location")
refused("a mix of devices", lambda: a @ y.t(), "Expected all tensors to be on the same device")
refused("a product of booleans", lambda: (a > 0) @ (b > 0).t(), "aten::mm: not implemented for 'Bool'")
refused("relu of integers", lambda: torch.relu(torch.ones(2, dtype=torch.int, device="pocket")), "for 'Int'")
refused("a wrong shape", lambda: a @ b, "mat1 and mat2 shapes")

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
