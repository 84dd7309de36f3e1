# SPDX-License-Identifier: BSD-3-Clause
"""The trace of a training step has every task of the device once, under the operator that launched it."""

import pytest
import torch
from profiles import check, operators, profiled
from torch import nn

from openreg_testing.budgets import count_launches


@pytest.fixture
def training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to("openreg")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(32, 8)
    side = torch.openreg.Stream()

    def step():
        with side:
            x = data.to("openreg")
        torch.openreg.current_stream().wait_stream(side)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return loss

    step()
    torch.openreg.synchronize()
    return step


@pytest.mark.covers("registration.REGISTER_PRIVATEUSE1_PROFILER")
def test_every_kernel_of_a_step_is_there_once_inside_its_operator(training, tmp_path):
    with profiled(tmp_path) as found, count_launches() as count:
        training()
    (found,) = found
    check(found)
    kernels = [item for item in found.trace.work if item.category == "kernel"]
    assert len(kernels) == count.launches
    assert len(found.trace.work) - len(kernels) == count.copies
    hosts = operators(found)
    assert all(item.args["External id"] in hosts for item in kernels)
    # A kernel bears the name of an operator's functional form.
    assert {item.name for item in kernels} <= {item.name.rstrip("_") for item in found.trace.host} | {
        item.name for item in found.trace.host
    }


def test_kernels_of_the_backward_pass_belong_to_its_thread(training, tmp_path):
    with profiled(tmp_path) as found:
        training()
    (found,) = found
    hosts = operators(found)
    threads = {
        item.name: hosts[item.args["External id"]].track for item in found.trace.work if item.category == "kernel"
    }
    assert threads["aten::tanh_backward"] != threads["aten::tanh"]
    backward = next(item for item in found.trace.host if item.name == "TanhBackward0")
    kernel = next(item for item in found.trace.work if item.name == "aten::tanh_backward")
    launch = hosts[kernel.args["External id"]]
    assert backward.begin <= launch.begin
    assert launch.end <= backward.end


def test_an_arrow_leads_from_each_launch_to_its_task(training, tmp_path):
    with profiled(tmp_path) as found:
        training()
    (found,) = found
    tasks = [*found.trace.work, *found.trace.waits]
    assert len(found.trace.arrows) == len(tasks) == len(found.trace.launches)
    ends = {(*arrow.stream, round(arrow.started, 2)) for arrow in found.trace.arrows}
    # A wait is drawn a nanosecond wider than it was.
    assert all(
        any(abs(item.begin - started) < 0.02 for *place, started in ends if tuple(place) == (item.process, item.track))
        for item in tasks
    )


def test_device_times_of_operators_are_those_of_their_kernels(training, tmp_path):
    with profiled(tmp_path) as found:
        training()
    (found,) = found
    events = {event.key: event for event in found.profiler.key_averages() if event.device_type.name == "CPU"}
    for name in ("aten::linear", "aten::tanh", "aten::tanh_backward"):
        expected = sum(item.duration for item in found.trace.work if item.name == name)
        assert events[name].device_time_total == pytest.approx(expected, abs=0.01)
    total = sum(
        event.self_device_time_total
        for event in found.profiler.key_averages()
        if event.device_type.name == "OPENREG" and not event.is_user_annotation
    )
    assert total == pytest.approx(sum(item.duration for item in found.trace.work), abs=0.1)
    table = found.profiler.key_averages().table(sort_by="device_time_total")
    assert "aten::linear_backward" in table
    assert "Self OPENREG time total" in table


def test_a_wait_lies_on_the_stream_that_waits_and_names_the_other(gate, tmp_path):
    main, side = torch.openreg.current_stream(), torch.openreg.Stream()
    x = torch.ones(4, device="openreg")
    torch.openreg.synchronize()
    torch.openreg.profiler.name_stream(side, "loader")
    with profiled(tmp_path) as found:
        gate.close(side)
        with side:
            x.mul(2)
        main.wait_stream(side)
        x.add(1)
        gate.open()
    torch.openreg.profiler.name_stream(side, "")
    (found,) = found
    check(found)
    (wait,) = found.trace.waits
    assert wait.name == "wait for loader"
    (product,) = [item for item in found.on("loader") if item.name == "aten::mul"]
    (total,) = found.on("default stream")
    assert found.trace.streams[0, wait.track].name == "default stream"
    assert product.end <= wait.end + 0.003 <= total.begin + 0.006
    # Time in which a stream waits is no time of the device.
    (event,) = [event for event in found.profiler.key_averages() if event.key == "wait for loader"]
    assert event.is_user_annotation
