# SPDX-License-Identifier: BSD-3-Clause
"""A trace shows each collective once, from the moment when its operands are ready to its last message.

Needs openreg-distributed, which this package does not.
"""

import importlib.util

import pytest
from _platform import START_METHOD
from profiles import Exported, check

from openreg_profiler import resources

pytestmark = [
    pytest.mark.every_subset,
    pytest.mark.skipif(
        importlib.util.find_spec("openreg_distributed") is None,
        reason="openreg-distributed, which brings collectives, is not installed",
    ),
]

# Two ranks do the same, of which the first keeps its traces: one with the host's operators, one without.
PROGRAM = """
import sys
import torch
from torch import distributed, multiprocessing
from torch.profiler import ProfilerActivity, profile
import openreg_distributed, openreg_ops, openreg_profiler
from openreg_testing.plugin.gate import Gate

def step(x, parts):
    gate = Gate()
    gate.close()  # so that nothing is done before it is waited for
    y = x * 2
    distributed.all_reduce(y)
    z = y + 1
    distributed.all_gather_single(parts, z)
    parts.exp_()
    gate.open()
    gate.end()

def run(rank, store):
    torch.set_num_threads(1)
    distributed.init_process_group("occl", init_method=f"file://{store}", rank=rank, world_size=2)
    x, parts = torch.ones(1024, device="openreg"), torch.empty(2048, device="openreg")
    step(x, parts)
    both = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    for name, activities in (("both", both), ("device", both[1:])):
        distributed.barrier()
        with profile(activities=activities) as profiler:
            step(x, parts)
        if rank == 0:
            profiler.export_chrome_trace(f"{name}.json")
            if name == "both":
                for event in profiler.key_averages():
                    if event.key.startswith("c10d::") and event.device_type.name == "CPU":
                        print(event.key, event.device_time_total > 0)
    distributed.destroy_process_group()

if __name__ == "__main__":
    multiprocessing.start_processes(run, args=(sys.argv[1],), nprocs=2, start_method=sys.argv[2])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture
def traces(python, folder, tmp_path):
    """(with the host's operators, of the device alone, what was printed); recorded once."""
    output = folder / "output.txt"
    if not output.exists():
        program = tmp_path / "program.py"
        program.write_text(PROGRAM, "utf-8")
        result = python("", str(program), str(tmp_path / "store"), START_METHOD)
        assert result.returncode == 0, result.stderr
        for name in ("both", "device"):
            (tmp_path / f"{name}.json").rename(folder / f"{name}.json")
        output.write_text(result.stdout, "utf-8")
    return Exported(folder / "both.json"), Exported(folder / "device.json"), output.read_text("utf-8")


def test_each_collective_is_there_once_between_what_it_reads_and_what_reads_it(traces):
    found, _, _ = traces
    check(found)
    collectives = [item for item in found.trace.work if item.is_collective]
    assert [item.name for item in collectives] == ["c10d::allreduce_", "c10d::_allgather_base_"]
    kernels = found.on("default stream")[1:]  # the first is the gate
    assert [item.name for item in kernels] == ["aten::mul", "aten::add", "aten::exp"]
    for before, collective, after in zip(kernels, collectives, kernels[1:], strict=False):
        assert before.end <= collective.begin + 0.003
        assert collective.end <= after.begin + 0.003
    # No engine runs them, and the streams that wait for them do not count as busy.
    assert all("engine" not in item.args for item in collectives)


def test_arrows_lead_to_the_lane_of_a_collective_and_back(traces):
    found, _, _ = traces
    main = next(place for place, stream in found.trace.streams.items() if stream.name == "default stream")
    for collective in (item for item in found.trace.work if item.is_collective):
        lane = (collective.process, collective.track)
        assert any((arrow.stream, arrow.waiting) == (main, lane) for arrow in found.trace.dependencies)
        assert any((arrow.stream, arrow.waiting) == (lane, main) for arrow in found.trace.dependencies)


def test_their_time_is_in_the_tables(traces):
    found, _, printed = traces
    assert set(printed.splitlines()) == {"c10d::allreduce_ True", "c10d::_allgather_base_ True"}
    measured = resources.measure(found.trace)
    assert [(item.name, item.count) for item in measured.collectives] == [
        ("c10d::_allgather_base_", 1),
        ("c10d::allreduce_", 1),
    ]
    assert all(item.time > 0 for item in measured.collectives)


def test_without_the_hosts_operators_they_are_waits_for_semaphores(traces):
    _, found, _ = traces
    check(found)
    assert [item.name for item in found.trace.waits].count("wait for a semaphore") == 2
    assert not any(item.is_collective for item in found.trace.work)
