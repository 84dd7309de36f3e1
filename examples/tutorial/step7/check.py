# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 7 can do. The exit status is 0 if all of it is right."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch  # and not torch_pocket
from torch.utils.checkpoint import checkpoint


def python(code, **settings):
    """Runs code in a process of its own."""
    environment = os.environ | settings
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)


assert torch.accelerator.current_accelerator().type == "pocket"
x = torch.ones(2, 3, device="pocket")
print("import torch is enough:", x.sum())
assert python("import torch_pocket, torch; torch.ones(2, device='pocket')").returncode == 0
without = python("import torch; print(torch.accelerator.is_available())", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
assert without.stdout == "False\n", without
print("TORCH_DEVICE_BACKEND_AUTOLOAD=0 leaves it out")

with torch.autocast("pocket", dtype=torch.bfloat16):
    product = x @ x.t()
    assert product.dtype == torch.bfloat16
    assert torch.softmax(product, dim=0).dtype == torch.float32
assert (x @ x.t()).dtype == torch.float32
print("autocast multiplies in bfloat16 and takes the softmax in float32")

ones = torch.ones(1000, device="pocket", requires_grad=True)
dropped = checkpoint(torch.nn.functional.dropout, ones, use_reentrant=False)
dropped.sum().backward()  # computes the dropout again: with the same numbers, the gradient is the result
assert torch.equal(ones.grad, dropped)
print("a checkpoint computes dropout again with the same random numbers")

torch.manual_seed(0)
data = torch.randn(256, 4)
target = data.sum(dim=1, keepdim=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to("pocket")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("pocket")
batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data, target), batch_size=64, pin_memory=True)
for _ in range(20):
    for inputs, wanted in batches:
        inputs, wanted = inputs.to("pocket", non_blocking=True), wanted.to("pocket", non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("pocket", dtype=torch.float16):
            loss = (model(inputs) - wanted).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
assert loss.item() < 0.1
print(f"a network trains in mixed precision, from pinned batches: loss {loss.item():.3f}")

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "model.pt"
    torch.save(model.state_dict(), file)
    on_device = torch.load(file)
    assert all(value.device.type == "pocket" for value in on_device.values())
    on_cpu = torch.load(file, map_location="cpu")
    for name, value in model.state_dict().items():
        assert torch.equal(value, on_device[name])
        assert torch.equal(value.cpu(), on_cpu[name])
print("its state goes into a file and back, to the device and to the CPU")

tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
for operator in (torch.ops.pocket.cube, torch.ops.pocket.soft_step):
    torch.library.opcheck(operator, [torch.randn(3, device="pocket", requires_grad=True)], test_utils=tests)
print("custom operators pass PyTorch's check, with autograd traced")
