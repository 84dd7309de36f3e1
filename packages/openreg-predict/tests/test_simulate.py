# SPDX-License-Identifier: BSD-3-Clause
"""Programs on the device: real values, in an order and times that follow from the description and by hand."""

import dataclasses

import pytest
import torch

import openreg_ops  # noqa: F401
import openreg_predict
from openreg_predict import description
from openreg_predict.simulate import simulate


def seconds(value):
    return description.Quantity(value, "assumed")


# A launch takes 1 s of the host, the link moves a byte in 1 s, memory too.
CHIP = dataclasses.replace(
    openreg_predict.load("a100").plain(),
    rates={("vector", "float32"): description.Quantity(1e30, "assumed")},
    memory_bandwidth=seconds(1.0),
    launch_host=seconds(1.0),
    links={"host": description.Link(seconds(1.0), seconds(0.0))},
    copy_engines=2,
)
SIZE = 1024  # bytes of a tensor here


def tensor(device="openreg"):
    return torch.full((SIZE // 4,), 2.0, device=device)


def begins(run):
    return {item.name.removeprefix("aten::"): (item.begin, item.end) for item in run.timeline.slices}


def test_values_are_real_and_times_those_of_the_chip():
    x = tensor()
    with simulate(CHIP) as run:
        y = x * 3
        z = y.exp()
    assert torch.equal(z.cpu(), torch.full((SIZE // 4,), 6.0).exp())
    assert begins(run) == {"mul": (1, 1 + 2 * SIZE), "exp": (1 + 2 * SIZE, 1 + 4 * SIZE)}
    assert run.seconds == 1 + 4 * SIZE


def test_a_copy_overlaps_with_a_kernel_on_another_stream():
    x, host, loader = tensor(), tensor("cpu").pin_memory(), torch.openreg.Stream()
    with simulate(CHIP) as run:
        with torch.openreg.stream(loader):
            y = host.to("openreg", non_blocking=True)
        x.exp_()
        torch.openreg.current_stream().wait_stream(loader)
        y.neg_()
    assert begins(run) == {
        "_to_copy": (1, 1 + SIZE),
        "exp_": (2, 2 + 2 * SIZE),
        "neg_": (2 + 2 * SIZE, 2 + 4 * SIZE),
    }


def test_a_stream_waits_for_the_place_that_an_event_marks():
    x, y, other = tensor(), tensor(), torch.openreg.Stream()
    event = torch.Event("openreg")
    with simulate(CHIP) as run:
        x.exp_()
        event.record()
        x.neg_()
        other.wait_event(event)
        with torch.openreg.stream(other):
            y.to("cpu", non_blocking=True)
    torch.accelerator.synchronize()
    times = begins(run)
    assert times["_to_copy"] == (times["exp_"][1], times["exp_"][1] + SIZE)
    assert times["neg_"][0] == times["exp_"][1]


def test_the_host_waits():
    x = tensor()
    with simulate(CHIP) as run:
        x.exp_()
        torch.accelerator.synchronize()
        x.neg_()
    assert begins(run)["neg_"] == (1 + 2 * SIZE + 1, 2 + 4 * SIZE)


def test_a_backward_pass_is_there():
    x = tensor().requires_grad_()
    with simulate(CHIP) as run:
        (x * x).sum().backward()
    assert torch.equal(x.grad.cpu(), torch.full((SIZE // 4,), 4.0))
    assert any(call.is_backward for call in run.calls)
    assert run.seconds > 4 * SIZE


def test_a_graph_is_launched_once_and_runs_all_it_captured():
    x, stream = tensor(), torch.Stream("openreg")
    graph = torch.accelerator.Graph()
    with simulate(CHIP) as run:
        with stream, graph:
            x.exp_()
            x.neg_()
        with stream:
            graph.replay()
            graph.replay()
    names = [item.name for item in run.timeline.slices]
    assert names == ["aten::exp_", "aten::neg_"] * 2
    assert run.host_seconds == 2
    assert run.seconds == pytest.approx(1 + 4 * 2 * SIZE)


def test_memory_is_that_of_the_devices_tensors():
    x = tensor()
    with simulate(CHIP) as run:
        y = x + 1
        del y
        x + 2
    assert run.peak == 2 * SIZE
