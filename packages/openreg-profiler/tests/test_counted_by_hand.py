# SPDX-License-Identifier: BSD-3-Clause
"""A trace has exactly the kernels, copies, fills and waits of a program that were counted by hand."""

import ctypes
from collections import Counter

import pytest
import torch
from profiles import check, profiled

import openreg_profiler  # noqa: F401
from openreg_testing.plugin.gate import driver

DEVICE = "openreg"


def peer_copy(to, source):
    """A copy by the driver; PyTorch's own is a kernel."""
    arguments = (to.data_ptr(), to.device.index, source.data_ptr(), source.device.index, to.nbytes)
    stream = torch.openreg.current_stream(to.device).native_handle
    assert driver().orMemcpyPeerAsync(*map(ctypes.c_size_t, arguments), ctypes.c_void_p(stream)) == 0


def test_a_copy_between_devices_runs_where_its_source_is_and_the_other_device_waits(gate, tmp_path):
    x, other = torch.ones(8, device=DEVICE), torch.empty(8, device="openreg:1")
    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    with profiled(tmp_path) as found:
        gate.close()
        other.copy_(x)
        other.add_(1)
        gate.open()
        torch.openreg.synchronize(1)
    (found,) = found
    check(found)
    copied = found.on("default stream")[-1]
    (added,) = found.on("default stream", device=1)
    assert (copied.name, added.name) == ("aten::_copy_from", "aten::add")
    (wait,) = found.trace.waits
    assert (wait.process, wait.name) == (1, "wait for default stream of openreg:0")
    assert copied.end <= wait.end + 0.003 <= added.begin + 0.006


def test_elementwise_operators_are_a_kernel_each(tmp_path):
    x = torch.ones(8, device=DEVICE)
    torch.openreg.synchronize()
    with profiled(tmp_path) as found:
        ((x + 1) * 2).exp_()
        x.sum()
    (found,) = found
    check(found)
    assert found.names == ["aten::add", "aten::mul", "aten::exp", "aten::sum"]
    assert found.trace.waits == []


def test_copies_say_from_where_to_where_and_how_much(tmp_path):
    host, pinned = torch.ones(256), torch.ones(256, pin_memory=True)
    x, other = torch.empty(256, device=DEVICE), torch.empty(256, device="openreg:1")
    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    with profiled(tmp_path) as found:
        x.copy_(host)
        x.copy_(pinned, non_blocking=True)
        pinned.copy_(x, non_blocking=True)
        x.cpu()
        peer_copy(other, x)
        torch.openreg.synchronize(1)
    (found,) = found
    check(found)
    copies = Counter((item.name, item.args["bytes"]) for item in found.trace.work if item.category == "gpu_memcpy")
    assert copies == {
        ("Memcpy HtoD (Pageable -> Device)", 1024): 1,
        ("Memcpy HtoD (Pinned -> Device)", 1024): 1,
        ("Memcpy DtoH (Device -> Pinned)", 1024): 1,
        ("Memcpy DtoH (Device -> Pageable)", 1024): 1,
        ("Memcpy PtoP (Device -> Device)", 1024): 1,
    }


def test_memory_that_was_released_before_the_end_is_known_all_the_same(tmp_path):
    host = torch.ones(4 << 20)
    with profiled(tmp_path) as found:
        x = host.to(DEVICE)
        torch.openreg.synchronize()
        del x
        torch.openreg.memory.empty_cache()
    assert [item.name for item in found[0].trace.work] == ["Memcpy HtoD (Pageable -> Device)"]


def test_a_pause_is_as_long_as_it_says(tmp_path):
    with profiled(tmp_path) as found:
        torch.openreg._sleep(20_000_000)
    (pause,) = found[0].trace.work
    assert (pause.name, pause.category) == ("pause", "kernel")
    assert pause.duration >= 20_000


def test_streams_of_two_devices_have_their_work_and_their_names(tmp_path):
    x, y = torch.ones(8, device="openreg:0"), torch.ones(8, device="openreg:1")
    urgent = torch.openreg.Stream("openreg:1", priority=-1)
    for device in (0, 1):
        torch.openreg.synchronize(device)
    with profiled(tmp_path) as found:
        x.add(1)
        y.mul(2)
        with torch.openreg.device(1), torch.openreg.stream(urgent):
            y.exp()
        torch.openreg.synchronize(1)
    (found,) = found
    check(found)
    assert [item.name for item in found.on("default stream", device=0)] == ["aten::add"]
    assert [item.name for item in found.on("default stream", device=1)] == ["aten::mul"]
    (name,) = [
        stream.name for (device, _), stream in found.trace.streams.items() if device == 1 and "(priority" in stream.name
    ]
    assert name.endswith("(priority -1)")
    assert [item.name for item in found.on(name, device=1)] == ["aten::exp"]
    assert {item.args["engine"] for item in found.trace.work} == {"compute 0"}
    assert {event.device_index for event in found.profiler.events() if event.name == "aten::mul"} >= {1}


@pytest.mark.covers("registration.REGISTER_PRIVATEUSE1_PROFILER")
def test_every_task_of_every_replay_of_a_graph_is_there_once(tmp_path):
    stream, graph = torch.Stream(DEVICE), torch.accelerator.Graph()
    x = torch.ones(4, device=DEVICE)
    torch.openreg.synchronize()
    with stream, graph:
        (x * 2 + 1).exp_()
    with profiled(tmp_path) as found:
        for _ in range(3):
            graph.replay()
    (found,) = found
    check(found)
    assert found.names == ["aten::mul", "aten::add", "aten::exp"] * 3
    launches = Counter(item.args["graph launch"] for item in found.trace.work)
    assert list(launches.values()) == [3, 3, 3]
    ranges = [item for item in found.trace.ranges if item.name.startswith("graph launch ")]
    assert len(ranges) == 3
    assert [item.name for item in found.trace.launches] == ["orGraphLaunch"] * 3
    assert len(found.trace.arrows) == 3


def test_arrows_lead_from_what_an_event_marks_to_the_streams_that_wait_for_it(gate, tmp_path):
    main, first, second = torch.openreg.current_stream(), torch.openreg.Stream(), torch.openreg.Stream("openreg:1")
    x, event = torch.ones(4, device=DEVICE), torch.openreg.Event()
    for device in (0, 1):
        torch.openreg.synchronize(device)
    with profiled(tmp_path) as found:
        gate.close()
        x.exp()
        event.record(main)
        x.sin()  # after the mark, so that no arrow begins here
        first.wait_event(event)
        second.wait_event(event)
        with torch.openreg.stream(first):
            x.cos()
        main.wait_stream(first)
        gate.open()
        second.synchronize()
    (found,) = found
    check(found)
    work = {item.name: item for item in found.trace.work}
    ends = {name: (item.process, item.track, item.end) for name, item in work.items()}
    arrows = sorted((*arrow.stream, arrow.done) for arrow in found.trace.dependencies)
    marked = sorted([ends["aten::exp"], ends["aten::exp"], ends["aten::cos"]])
    assert [arrow[:2] for arrow in arrows] == [end[:2] for end in marked]
    assert [arrow[2] for arrow in arrows] == pytest.approx([end[2] for end in marked], rel=0, abs=0.004)
    waits = {(item.process, item.track): item for item in found.trace.waits}
    for arrow in found.trace.dependencies:
        assert arrow.released == pytest.approx(waits[arrow.waiting].end, abs=0.004)
        assert arrow.done <= arrow.released
    # The marks at both ends are no ranges of the program.
    assert found.trace.ranges == []


def test_a_wait_for_a_semaphore_lasts_until_it_is_signaled(tmp_path):
    x, semaphore = torch.ones(4, device=DEVICE), ctypes.c_void_p()
    stream = torch.openreg.current_stream()
    torch.openreg.synchronize()
    assert driver().orSemaphoreCreate(ctypes.byref(semaphore), ctypes.c_uint64(0)) == 0
    with profiled(tmp_path) as found:
        x.exp()
        handle = ctypes.c_void_p(stream.native_handle)
        assert driver().orStreamWaitSemaphore(handle, semaphore, ctypes.c_uint64(3)) == 0
        x.sin()
        assert not stream.query()
        assert driver().orSemaphoreSignal(semaphore, ctypes.c_uint64(3)) == 0
        torch.openreg.synchronize()
    assert driver().orSemaphoreDestroy(semaphore) == 0
    (found,) = found
    check(found)
    (wait,) = found.trace.waits
    assert (wait.name, wait.args["value"]) == ("wait for a semaphore", 3)
    before, after = found.trace.work
    assert before.end <= wait.begin + 0.003
    assert wait.end <= after.begin + 0.003
    assert [item.name for item in found.trace.launches].count("orStreamWaitSemaphore") == 1


def test_a_fill_is_no_kernel(tmp_path):
    x = torch.ones(4096, device=DEVICE)
    torch.openreg.synchronize()
    with profiled(tmp_path) as found:
        x.zero_()
    (found,) = found
    check(found)
    assert len(found.trace.work) == 1


def test_what_a_failed_device_did_not_run_is_no_work(gate, tmp_path):
    x = torch.ones(4, device=DEVICE)
    torch.openreg.synchronize()

    def work():
        gate.close()
        results = x.add(1), x.mul(2), x.exp(), x.sin()
        gate.open()
        torch.openreg.synchronize()
        return results

    def profile_work():
        with profiled(tmp_path) as found:
            with torch.openreg.inject_faults("launch:3"), pytest.raises(torch.AcceleratorError):
                work()
            torch.openreg.reset_device()
        return found

    with pytest.warns(UserWarning, match="2 tasks were not run"):
        (found,) = profile_work()
    assert found.names[1:] == ["aten::add", "aten::mul"]
    assert [item.args.get("status") for item in found.trace.work[1:]] == [None, "failed"]
