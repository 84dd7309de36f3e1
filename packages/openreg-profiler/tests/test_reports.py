# SPDX-License-Identifier: BSD-3-Clause
"""The tables, ranges, schedules, memory timelines and files of PyTorch's profiler include the device's tasks."""

import json

import pytest
import torch
from profiles import BOTH, check, profiled
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

DEVICE = "openreg"
# Without it PyTorch keeps stacks for the trace alone.
WITH_STACKS = _ExperimentalConfig(verbose=True)


@pytest.fixture
def x():
    x = torch.ones(64, 64, device=DEVICE)
    torch.openreg.synchronize()
    return x


def of_device(profiler):
    return [event for event in profiler.events() if event.device_type.name == "OPENREG"]


def test_ranges_lie_over_the_kernels_that_were_launched_in_them(x, tmp_path):
    with profiled(tmp_path) as found, record_function("outer"):
        x.add(1)
        with record_function("inner"):
            x.mul(2)
            x.exp()
        x.sin()
    (found,) = found
    check(found)
    ranges = {item.name: item for item in found.trace.ranges}
    work = {item.name: item for item in found.trace.work}
    assert set(ranges) == {"outer", "inner"}
    # Kineto draws a range a nanosecond wider than its first and its last kernel.
    for name, first, last in (("outer", "aten::add", "aten::sin"), ("inner", "aten::mul", "aten::exp")):
        assert ranges[name].begin == pytest.approx(work[first].begin, abs=0.004)
        assert ranges[name].end == pytest.approx(work[last].end, abs=0.004)


def test_ranges_of_two_streams_are_two(x, tmp_path):
    side = torch.openreg.Stream()
    with profiled(tmp_path) as found, record_function("both"):
        x.add(1)
        with torch.openreg.stream(side):
            x.mul(2)
        torch.openreg.current_stream().wait_stream(side)
    tracks = [item.track for item in found[0].trace.ranges if item.name == "both"]
    assert len(set(tracks)) == len(tracks) == 2


def test_a_range_on_another_thread_is_its_own(x, tmp_path):
    """The backward pass runs on a thread of PyTorch's, in no range of the program's."""
    y = torch.ones(4, device=DEVICE, requires_grad=True)
    with profiled(tmp_path) as found, record_function("forward"):
        y.sin().sum().backward()
    (found,) = found
    (forward,) = [item for item in found.trace.ranges if item.name == "forward"]
    backward = next(item for item in found.trace.work if item.name == "aten::cos")
    assert forward.end <= backward.begin + 0.01


# PyTorch says once in a process that each cycle forgets the one before.
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
def test_only_the_active_steps_of_a_schedule_are_recorded(x, tmp_path):
    found = []
    with profile(
        activities=list(BOTH),
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda profiler: found.append([event.name for event in of_device(profiler)]),
    ) as profiler:
        for step in range(8):
            (x.add, x.mul, x.sub, x.div)[step % 4](2)
            profiler.step()
    kernels = [[name for name in names if name.startswith("aten")] for names in found]
    assert kernels == [["aten::sub", "aten::div"]] * 2
    assert all(any(name == "ProfilerStep*" for name in names) for names in found)


def test_the_device_alone(x, tmp_path):
    with profiled(tmp_path, activities=[ProfilerActivity.PrivateUse1]) as found:
        x.add(1)
        x.mul(2)
    (found,) = found
    assert found.names == ["aten::add", "aten::mul"]
    assert [item.name for item in found.trace.launches] == ["orLaunchKernel"] * 2
    assert found.trace.host == []


def test_the_host_alone_has_nothing_of_the_device(x, tmp_path):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        x.add(1)
    assert of_device(profiler) == []
    assert "orLaunchKernel" not in [event.name for event in profiler.events()]


def test_memory_is_that_of_the_caching_allocator(x, tmp_path):
    before = torch.openreg.memory.memory_allocated()
    with profiled(tmp_path, profile_memory=True, record_shapes=True) as found:
        y = x.add(1)
        level = torch.openreg.memory.memory_allocated()
        del y
    (found,) = found
    assert [(item.device, item.allocated, item.change) for item in found.trace.memory] == [
        (0, level, level - before),
        (0, before, before - level),
    ]
    (event,) = [event for event in found.profiler.key_averages() if event.key == "aten::add" and event.cpu_time_total]
    assert event.device_memory_usage == 64 * 64 * 4


def test_the_memory_timeline_has_the_device(tmp_path):
    model = torch.nn.Linear(64, 64).to(DEVICE)
    data = torch.ones(8, 64, device=DEVICE)
    torch.openreg.synchronize()
    with profile(activities=list(BOTH), profile_memory=True, record_shapes=True, with_stack=True) as profiler:
        model(data).sum().backward()
    with pytest.warns(FutureWarning, match="deprecated"):
        profiler.export_memory_timeline(str(tmp_path / "memory.json"), device="openreg:0")
    times, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(sizes) > 2
    gradient = 64 * 64 * 4
    assert max(sum(step) for step in sizes) >= 2 * gradient


def test_groups_by_shape_and_by_stack(x):
    with profile(
        activities=list(BOTH), record_shapes=True, with_stack=True, experimental_config=WITH_STACKS
    ) as profiler:
        x.add(1)
        x[0].add(1)
    shapes = [
        event.input_shapes
        for event in profiler.key_averages(group_by_input_shape=True)
        if event.key == "aten::add" and event.device_type.name == "CPU"
    ]
    assert sorted(shapes) == [[[64], [], []], [[64, 64], [], []]]
    stacks = profiler.key_averages(group_by_stack_n=3)
    assert any("test_reports.py" in line for event in stacks if event.key == "aten::add" for line in event.stack)


def test_tensorboard_gets_a_file(x, tmp_path):
    with profile(activities=list(BOTH), on_trace_ready=tensorboard_trace_handler(str(tmp_path), "worker")):
        x.add(1)
    (path,) = tmp_path.glob("worker.*.pt.trace.json")
    document = json.loads(path.read_text())
    assert [event["name"] for event in document["traceEvents"] if event.get("cat") == "kernel"] == ["aten::add"]
    assert [item["name"] for item in document["deviceProperties"]] == ["openreg:0", "openreg:1"]
    assert document["deviceProperties"][0]["totalGlobalMem"] == torch.openreg.get_device_properties(0).total_memory


def test_autograds_profiler_takes_the_records_too(x):
    with torch.autograd.profiler.profile(use_device=DEVICE, use_kineto=True) as profiler:
        x.add(1)
    (event,) = [event for event in profiler.key_averages() if event.key == "aten::add" and event.cpu_time_total]
    (kernel,) = [event for event in profiler.function_events if event.device_type.name == "OPENREG"]
    assert event.device_time_total == pytest.approx(kernel.time_range.elapsed_us())


def test_autograds_profiler_times_kernels_without_kineto(x):
    """By events around each operator, through the methods that the runtime registers."""
    with torch.autograd.profiler.profile(use_device=DEVICE, use_kineto=False) as profiler:
        with torch.openreg.profiler.range("around"):
            torch.openreg._sleep(3_000_000)
            x.mul(2)
        torch.openreg.profiler.mark("beside")
    found = {item.key: item for item in profiler.key_averages()}
    assert found["around"].device_time_total >= 3000
    assert found["aten::mul"].device_time_total > 0
    assert "beside" in found


def test_stacks_are_exported_by_device_time(x, tmp_path):
    with profile(activities=list(BOTH), with_stack=True, experimental_config=WITH_STACKS) as profiler:
        for _ in range(10):
            x.mm(x)
    profiler.export_stacks(str(tmp_path / "stacks.txt"), "self_privateuse1_time_total")
    assert "test_reports.py" in (tmp_path / "stacks.txt").read_text()
