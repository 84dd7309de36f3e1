# SPDX-License-Identifier: BSD-3-Clause
"""Collectives: their transport accesses memory without a task, and its result needs a wait."""

import pytest

SETUP = """
import openreg_distributed, warnings; warnings.simplefilter("ignore", FutureWarning)  # renamed collectives
import torch.distributed as dist
dist.init_process_group("occl", rank=0, world_size=1, store=dist.HashStore())
x = torch.ones(1024, device="openreg")
torch.openreg.synchronize()
"""
END = """
torch.openreg.synchronize()
dist.destroy_process_group()
print("done")
"""
READ = """
work = dist.all_reduce(x, async_op=True)
{wait}
y = x + 1
work.wait()
"""
OVERWRITTEN = """
work = dist.broadcast(x, 0, async_op=True)
{wait}
x.zero_()
work.wait()
"""
GATHERED = """
out = torch.zeros(1024, device="openreg")
work = dist.all_gather_into_tensor(out, x, async_op=True)
{wait}
y = out * 2
work.wait()
"""
SCATTERED = """
out = torch.zeros(1024, device="openreg")
work = dist.reduce_scatter_tensor(out, x, async_op=True)
{wait}
x.mul_(2)
work.wait()
"""


@pytest.mark.parametrize("code", [READ, OVERWRITTEN, GATHERED, SCATTERED], ids=["read", "overwritten", "out", "input"])
def test_a_collective_needs_its_wait(program, code):
    """pytorch/pytorch#177905, pytorch/pytorch#68112, pytorch/pytorch#147309."""
    lines = code.splitlines()
    first = 11 + next(i for i, line in enumerate(lines) if "async_op" in line) - 1
    done = program(SETUP + code.format(wait="") + END, OPENREG_SANITIZER="1")
    assert done.stdout == "done\n", done.stderr
    assert done.stderr.count("openreg-sanitizer: race:") >= 1, done.stderr
    assert "missing: work.wait()" in done.stderr
    assert f"first: program.py:{first}  work = dist." in done.stderr
    assert f"second: program.py:{first + 2}  " in done.stderr
    right = program(SETUP + code.format(wait="work.wait()") + END, OPENREG_SANITIZER="1")
    assert (right.stdout, right.stderr) == ("done\n", "")


def test_synchronous_collectives_are_silent(program):
    code = "for _ in range(3):\n    dist.all_reduce(x)\n    x.mul_(2)\n    dist.broadcast(x, 0)\n    y = x + 1\n"
    done = program(SETUP + code + END, OPENREG_SANITIZER="1")
    assert (done.stdout, done.stderr) == ("done\n", "")


DDP = """
from torch.nn.parallel import DistributedDataParallel
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
                                .to("openreg"))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8).to("openreg")).sum().backward()
    optimizer.step()
"""
FSDP = """
from torch.distributed.fsdp import fully_shard
model = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(3)]).to("openreg")
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 16).to("openreg")).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("code", [DDP, FSDP], ids=["ddp", "fsdp2"])
def test_distributed_training_is_silent(program, code):
    done = program(SETUP + code + END, OPENREG_SANITIZER="1")
    assert (done.stdout, done.stderr) == ("done\n", "")
