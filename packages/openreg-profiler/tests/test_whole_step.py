# SPDX-License-Identifier: BSD-3-Clause
"""The trace of a training step with streams, a graph, generated code and collectives has every task once.

Needs openreg-compile and openreg-distributed, which this package does not.
"""

import importlib.util
import json

import pytest
from _platform import START_METHOD
from profiles import Exported, check, operators

MISSING = [name for name in ("openreg_compile", "openreg_distributed") if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.every_subset,
    pytest.mark.skipif(bool(MISSING), reason="openreg-compile and openreg-distributed are not both installed"),
]

# The first rank keeps its trace, and says what the driver has counted meanwhile.
PROGRAM = """
import json, sys, warnings
import torch
import torch._inductor.compile_fx  # once for both ranks
from torch import distributed, multiprocessing, nn
from torch.profiler import ProfilerActivity, profile
import openreg_compile, openreg_distributed, openreg_ops, openreg_profiler
from openreg_testing.budgets import count_launches

warnings.filterwarnings("ignore", ".*torch.jit", DeprecationWarning)  # Inductor's own

def run(rank, store):
    torch.set_num_threads(1)
    distributed.init_process_group("occl", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to("openreg:0")
    activation = torch.compile(lambda x, y: nn.functional.gelu(x * y + 1), fullgraph=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    host, side, graph = torch.randn(32, 8), torch.openreg.Stream("openreg:0"), torch.openreg.Graph()
    fixed = torch.ones(8, device="openreg:0")
    with torch.openreg.graph(graph):
        fixed.mul_(2).add_(1)

    def step():
        with side:
            x = host.to("openreg:0")
        torch.openreg.current_stream().wait_stream(side)
        graph.replay()
        loss = model(activation(x, fixed)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            distributed.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        other = x.to("openreg:1")
        (other * 2).sum()

    def synchronize():
        for device in range(2):
            torch.openreg.synchronize(device)

    step()
    synchronize()
    distributed.barrier()
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with count_launches() as count, profile(activities=activities) as profiler:
        step()
        synchronize()
    if rank == 0:
        profiler.export_chrome_trace("trace.json")
        print(json.dumps([count.launches, count.copies]))
    distributed.barrier()
    distributed.destroy_process_group()

if __name__ == "__main__":
    multiprocessing.start_processes(run, args=(sys.argv[1],), nprocs=2, start_method=sys.argv[2])
"""


def test_every_task_of_a_step_that_uses_everything_is_there_once(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, "utf-8")
    result = python("", str(program), str(tmp_path / "store"), START_METHOD)
    assert result.returncode == 0, result.stderr
    launches, copies = json.loads(result.stdout.splitlines()[-1])
    found = Exported(tmp_path / "trace.json")
    check(found)
    kernels = [item for item in found.trace.work if item.category == "kernel" and not item.is_collective]
    collectives = [item for item in found.trace.work if item.is_collective]
    assert len(kernels) == launches
    assert len(found.trace.work) - len(kernels) - len(collectives) == copies
    assert [item.name for item in collectives] == ["c10d::allreduce_"] * 4
    assert {item.process for item in kernels} == {0, 1}
    names = [item.name for item in kernels]
    assert sum("fused" in name and "gelu" in name for name in names) == 1
    assert names.count("aten::tanh_backward") == 1
    hosts = operators(found)
    replayed = [item for item in kernels if "graph launch" in item.args]  # by no operator
    assert [item.name for item in replayed] == ["aten::mul", "aten::add"]
    launched = [item for item in found.trace.work if "graph launch" not in item.args]
    assert all(item.args["External id"] in hosts for item in launched)
