# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.Stream orders tasks, can be made current, and waits for other streams and events."""

import threading
import time

import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")


@pytest.mark.covers("module.Stream", "guard.getNewStream", "guard.getStreamNativeHandle")
def test_a_stream_is_a_torch_stream_of_the_device():
    stream = openreg.Stream(device=1, priority=-1)
    assert isinstance(stream, openreg.Stream)
    assert isinstance(stream, torch.Stream)
    assert stream.device == torch.device("openreg:1")
    assert stream.device_index == 1
    assert stream.native_handle != openreg.Stream(1).native_handle
    assert isinstance(torch.Stream(device="openreg"), torch.Stream)


@pytest.mark.covers("module.Stream", "guard.getNewStream")
@pytest.mark.parametrize("priority", [0, -1, -3, 100, -100])
def test_any_priority_is_taken_and_clamped(priority, driver):
    for stream in (openreg.Stream(priority=priority), torch.Stream("openreg", priority=priority)):
        assert driver.stream_priority(stream.native_handle) == min(max(priority, -3), 0)


@pytest.mark.covers("module.Stream")
def test_the_range_of_priorities_is_that_of_the_streams():
    least, greatest = openreg.Stream.priority_range()
    assert (least, greatest) == (0, -3)
    assert [openreg.Stream(priority=priority).priority for priority in (least, greatest)] == [least, greatest]


@pytest.mark.covers("module.ExternalStream", "module.get_stream_from_external")
def test_a_stream_of_another_library_is_used_by_its_handle(driver, gate):
    with openreg.device(1):
        made = driver.stream()
    for stream in (openreg.ExternalStream(made), openreg.get_stream_from_external(made, "openreg:1")):
        assert isinstance(stream, openreg.Stream)
        assert (stream.device_index, stream.native_handle) == (1, made)
        gate.close(stream)
        assert not stream.query()
    assert openreg.ExternalStream(openreg.default_stream(1).native_handle) == openreg.default_stream(1)
    assert openreg.ExternalStream(0, device=1) == openreg.default_stream(1)


@pytest.mark.covers("module.ExternalStream")
def test_a_handle_that_fits_no_stream_is_refused(driver):
    with openreg.device(1):
        made = driver.stream()
    with pytest.raises(ValueError, match=r"openreg:1.*openreg:0"):
        openreg.ExternalStream(made, device=0)
    for handle in (1 << 40, -1):
        with pytest.raises((RuntimeError, TypeError)):
            openreg.ExternalStream(handle)


@pytest.mark.covers("module._sleep", "guard.queryStream", "guard.synchronizeStream")
def test_an_idle_stream_is_ready_and_a_busy_one_is_not(gate):
    stream = openreg.Stream()
    assert stream.query()
    gate.close(stream)
    assert not stream.query()
    gate.open_soon()
    stream.synchronize()
    assert gate.is_open
    assert stream.query()


@pytest.mark.covers("guard.queryStream")
def test_a_query_never_says_done_while_a_kernel_runs(driver):
    ended = []  # by kernels that take half a millisecond, in which there are queries
    streams = [openreg.Stream(device) for device in (0, 1, 0)]
    for number in range(100):
        stream = streams[number % 3]
        driver.launch(stream.native_handle, lambda: time.sleep(0.0005) or ended.append(None))
        while not stream.query():
            pass
        assert len(ended) == number + 1


def test_a_stream_of_higher_priority_overtakes_queued_work(driver):
    order = []
    started, opened = threading.Event(), threading.Event()
    usual, urgent = openreg.Stream(priority=0), openreg.Stream(priority=-3)
    driver.launch(usual.native_handle, lambda: started.set() or not opened.wait(120) or None)
    assert started.wait(120)  # from here on everything is queued behind this kernel
    for number in range(3):
        driver.launch(usual.native_handle, lambda number=number: order.append(f"usual {number}"))
    driver.launch(urgent.native_handle, lambda: order.append("urgent"))
    opened.set()
    openreg.synchronize()
    assert order == ["urgent", "usual 0", "usual 1", "usual 2"]


@pytest.mark.covers("module.synchronize")
def test_enqueueing_does_not_wait_and_streams_do_not_wait_for_each_other(gate):
    busy, other = openreg.Stream(), openreg.Stream()
    gate.close(busy)
    for stream in (busy, other, openreg.default_stream(1)):
        with openreg.stream(stream):
            openreg._sleep(1000)
    other.synchronize()
    openreg.synchronize(1)
    assert not busy.query()
    gate.open()
    openreg.synchronize(0)
    assert busy.query()


@pytest.mark.covers("module.Stream")
def test_a_stream_waits_for_an_event_of_another_device(gate):
    first, second = openreg.Stream(0), openreg.Stream(1)
    gate.close(first)
    event = first.record_event()
    second.wait_event(event)
    assert not second.query()
    gate.open_soon()
    second.synchronize()
    assert gate.is_open
    assert first.query()
    assert event.query()


@pytest.mark.covers("module.Stream")
def test_a_stream_waits_for_a_stream(gate):
    first, second = openreg.Stream(), openreg.Stream()
    gate.close(first)
    second.wait_stream(first)
    assert not second.query()
    gate.open_soon()
    second.synchronize()
    assert gate.is_open
    assert first.query()


@pytest.mark.covers("module.Stream")
def test_record_event_marks_in_the_given_event_or_a_new_one():
    stream = openreg.Stream()
    given = openreg.Event()
    assert stream.record_event(given) is given
    assert isinstance(stream.record_event(), openreg.Event)
    base = torch.Event("openreg")
    assert stream.record_event(base) is base


@pytest.mark.covers("module.current_stream", "module.default_stream", "module.set_stream")
def test_the_default_stream_is_current_until_another_is():
    for device in range(2):
        assert openreg.current_stream(device) == openreg.default_stream(device)
        assert openreg.default_stream(device).device_index == device
    assert openreg.default_stream(0) != openreg.default_stream(1)
    stream = openreg.Stream(1)
    openreg.set_stream(stream)
    assert openreg.current_device() == 1
    assert openreg.current_stream() == stream == torch.accelerator.current_stream()
    assert isinstance(openreg.current_stream(), openreg.Stream)
    assert openreg.current_stream(0) == openreg.default_stream(0)
    openreg.set_stream(None)
    assert openreg.current_stream() == stream


@pytest.mark.covers("module.stream", "module.StreamContext", "guard.exchangeStream")
@pytest.mark.parametrize("enter", [openreg.stream, openreg.StreamContext, lambda stream: stream])
def test_a_context_makes_stream_and_device_current_and_gives_both_back(enter):
    before = openreg.Stream(1)
    openreg.set_stream(before)
    openreg.set_device(0)
    stream = openreg.Stream(1)
    with enter(stream):
        assert openreg.current_device() == 1
        assert openreg.current_stream() == stream
    assert openreg.current_device() == 0
    assert openreg.current_stream() == openreg.default_stream(0)
    assert openreg.current_stream(1) == before
    with pytest.raises(KeyError), enter(stream):
        raise KeyError
    assert openreg.current_device() == 0
    assert openreg.current_stream(1) == before


def enter(stream):
    openreg.stream(stream).__enter__()


@pytest.mark.parametrize("use", [openreg.set_stream, enter])
@pytest.mark.parametrize(
    ("what", "reason"), [("cpu:1", "got one of cpu:1"), ("openreg:9", "out of range: .*9 was requested")]
)
def test_a_stream_that_is_refused_leaves_device_and_streams(use, what, reason):
    kind, index = what.split(":")
    before = openreg.Stream(1)
    openreg.set_stream(before)
    openreg.set_device(0)
    refused = torch.Stream(stream_id=0, device_index=int(index), device_type=torch.Stream(kind).device_type)
    with pytest.raises(RuntimeError, match=reason):
        use(refused)
    assert openreg.current_device() == 0
    assert openreg.current_stream(0) == openreg.default_stream(0)
    assert openreg.current_stream(1) == before


@pytest.mark.covers("module.StreamContext")
def test_a_context_may_be_entered_inside_itself():
    stream = openreg.Stream(1)
    context = openreg.stream(stream)
    with context:
        with context, openreg.stream(openreg.Stream(0)):
            assert openreg.current_device() == 0
        assert openreg.current_stream() == stream
    assert openreg.current_device() == 0
    assert openreg.current_stream(0) == openreg.default_stream(0)
    assert openreg.current_stream(1) == openreg.default_stream(1)


@pytest.mark.covers("module.stream")
def test_a_context_of_none_changes_nothing():
    openreg.set_stream(openreg.Stream(1))
    stream = openreg.current_stream()
    with openreg.stream(None):
        assert openreg.current_stream() == stream


@pytest.mark.covers("module.current_stream")
def test_the_current_stream_belongs_to_the_thread():
    openreg.set_stream(openreg.Stream(0))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(openreg.current_stream(0)))
    thread.start()
    thread.join()
    assert seen == [openreg.default_stream(0)]


def test_equal_streams_are_one_in_a_set():
    stream = openreg.Stream()
    same = torch.Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)
    assert stream == same
    assert len({stream, same}) == 1
    assert stream != openreg.Stream()


def test_a_stream_that_does_not_exist_is_refused():
    real = openreg.Stream()
    forged = torch.Stream(stream_id=1 << 40, device_index=0, device_type=real.device_type)
    with pytest.raises(RuntimeError, match="stream"):
        forged.synchronize()
    assert real.query()


WAITS = {
    "synchronize": openreg.synchronize,
    "accelerator.synchronize": torch.accelerator.synchronize,
    "accelerator.synchronize(0)": lambda: torch.accelerator.synchronize(0),
    "stream.synchronize": lambda: openreg.current_stream().synchronize(),
    "event.synchronize": lambda: openreg.current_stream().record_event().synchronize(),
    "empty_cache": openreg.empty_cache,
    "reset_device": openreg.reset_device,
}


@pytest.mark.covers("guard.synchronizeStream")
@pytest.mark.parametrize("name", WAITS)
def test_other_python_threads_run_while_one_waits(name, gate):
    gate.close()
    gate.open_soon()  # by another thread, which needs the GIL
    WAITS[name]()
    assert gate.is_open
    assert openreg.current_stream().query()


def test_many_threads_use_streams_and_memory_at_once():
    failures = []

    def work(number):
        try:
            device = number % 2
            with openreg.device(device):
                for i in range(40):
                    stream = openreg.Stream()
                    with openreg.stream(stream):
                        storage = torch.UntypedStorage(1000 + i, device=stream.device)
                        openreg._sleep(1000)
                        storage.resize_(2000)
                        event = stream.record_event(openreg.Event())
                    if i % 10 == 0:
                        openreg.empty_cache()
                    event.synchronize()
                    assert openreg.current_device() == device
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []
