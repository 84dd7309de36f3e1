# SPDX-License-Identifier: BSD-3-Clause
"""Simulated programs compute real values, at times that follow from the chip's description."""

import contextlib
import dataclasses
import threading

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
    stream.synchronize()
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


def test_events_have_the_chips_time():
    x, begin, end = tensor(), torch.Event("openreg", enable_timing=True), torch.Event("openreg", enable_timing=True)
    with simulate(CHIP):
        begin.record()
        x.exp_()
        x.neg_()
        end.record()
        end.synchronize()
        assert begin.elapsed_time(end) == pytest.approx((1 + 2 * 2 * SIZE) * 1e3)


def test_a_query_is_answered_in_the_chips_time():
    x, y, event = tensor(), tensor()[:1], torch.Event("openreg")
    with simulate(CHIP):
        x.exp_()
        event.record()
        assert not event.query()
        for _ in range(2 * SIZE - 1):
            y.neg_()
        assert not event.query()  # at 2 * SIZE; the first kernel began at 1
        y.neg_()
        assert event.query()


def test_a_number_is_a_copy_for_which_the_host_waits():
    x = tensor()
    with simulate(CHIP) as run:
        x.exp_()
        assert x[0].item() == pytest.approx(7.389056)
        x.neg_()
    times = begins(run)
    assert times["_local_scalar_dense"] == (1 + 2 * SIZE, 1 + 2 * SIZE + 4)
    assert times["neg_"][0] == 1 + 2 * SIZE + 4 + 1
    assert run.timeline.host_slices[1][0] == "aten::_local_scalar_dense"
    assert [name for name, _, _ in run.timeline.host_slices].count("wait") == 1


def test_a_call_that_waits_in_its_middle_has_its_cost_once():
    x = tensor()
    with simulate(CHIP) as run:
        x.nonzero()
    places = SIZE // 4 * 8  # of 64 bits each
    assert sum(item.end - item.begin for item in run.timeline.slices) == pytest.approx(SIZE + places)


def test_replays_of_two_graphs_know_what_each_captured():
    x, stream, graphs = tensor(), torch.Stream("openreg"), [torch.accelerator.Graph() for _ in range(2)]
    with simulate(CHIP) as run:
        with stream, graphs[0]:
            x.exp_()
        with stream, graphs[1]:
            x[:4].neg_()
            x.sin_()
        with stream:
            for graph in (graphs[1], graphs[0], graphs[1]):
                graph.replay()
    stream.synchronize()
    times = [(item.name.removeprefix("aten::"), item.end - item.begin) for item in run.timeline.slices]
    one, other = [("exp_", 2 * SIZE)], [("neg_", 32), ("sin_", 2 * SIZE)]
    assert times == [(name, pytest.approx(seconds)) for name, seconds in other + one + other]
    assert run.host_seconds == pytest.approx(3)


def test_streams_of_two_devices_have_engines_of_their_own():
    x, y = tensor(), tensor("openreg:1")
    with simulate(CHIP) as run:
        x.exp_()
        y.neg_()
    assert begins(run) == {"exp_": (1, 1 + 2 * SIZE), "neg_": (2, 2 + 2 * SIZE)}
    assert [item.device for item in run.timeline.slices] == [0, 1]


def test_threads_may_launch_at_the_same_time():
    tensors = [tensor() for _ in range(4)]

    def work(x):
        with torch.openreg.stream(torch.openreg.Stream()):
            for _ in range(20):
                x.exp_().neg_()

    with simulate(CHIP) as run:
        threads = [threading.Thread(target=work, args=(x,)) for x in tensors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Modes of PyTorch belong to a thread: what others launch costs what the bytes of its operands cost.
    assert len(run.timeline.slices) == 4 * 20 * 2
    assert all(item.end - item.begin >= SIZE for item in run.timeline.slices)
    assert "aten::exp" in run.without_rule()


def test_a_second_simulation_inside_is_refused():
    with simulate(CHIP), pytest.raises(RuntimeError, match="another subscription keeps the time"), simulate(CHIP):
        pass
    x = tensor()
    with simulate(CHIP) as run:
        x.exp_()
    assert run.seconds == 1 + 2 * SIZE


def test_an_exception_inside_ends_it():
    x = tensor()

    def fails():
        with simulate(CHIP) as run:
            runs.append(run)
            x.exp_()
            raise ValueError("mine")

    runs = []
    with pytest.raises(ValueError, match="mine"):
        fails()
    assert runs[0].seconds == 1 + 2 * SIZE
    begin, end = torch.Event("openreg", enable_timing=True), torch.Event("openreg", enable_timing=True)
    begin.record()
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) > 0  # modeled, nothing would have passed


def test_a_profile_shows_the_chips_times(tmp_path):
    trace = pytest.importorskip("openreg_profiler.trace", reason="openreg-profiler is not installed")
    from torch.profiler import ProfilerActivity, profile

    x, host, loader = tensor(), tensor("cpu").pin_memory(), torch.openreg.Stream()
    chip = dataclasses.replace(CHIP, memory_bandwidth=seconds(1e6), launch_host=seconds(1e-6))
    chip = dataclasses.replace(chip, links={"host": description.Link(seconds(1e6), seconds(0.0))})
    for number, simulates_first in enumerate((True, False)):
        path = tmp_path / f"{number}.json"
        with contextlib.ExitStack() as stack:
            if simulates_first:
                stack.enter_context(simulate(chip))
            profiler = stack.enter_context(profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]))
            if not simulates_first:
                stack.enter_context(simulate(chip))
            with torch.openreg.stream(loader):
                y = host.to("openreg", non_blocking=True)
            x.exp_()
            torch.openreg.current_stream().wait_stream(loader)
            y.neg_()
            torch.accelerator.synchronize()
        profiler.export_chrome_trace(str(path))
        found = {item.name: item for item in trace.read(path).work}
        copy, kernel, last = (found[name] for name in ("Memcpy HtoD (Pinned -> Device)", "aten::exp", "aten::neg"))
        assert [round(item.duration) for item in (copy, kernel, last)] == [SIZE, 2 * SIZE, 2 * SIZE]
        assert round(kernel.begin - copy.begin) == 1  # the second launch
        assert last.begin == pytest.approx(kernel.end, abs=0.01)
        assert (copy.args["engine"], kernel.args["engine"]) == ("copy 1", "compute 0")
