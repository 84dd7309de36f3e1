# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.Event marks a place in a stream, can be waited for, and measures time."""

import time

import pytest
import torch
from driver.device_api import DriverError

from openreg_runtime import openreg
from openreg_testing.plugin.gate import Gate

pytestmark = pytest.mark.usefixtures("clean_device")

SLEEP = 40_000_000  # nanoseconds


@pytest.fixture
def later_gate():
    gate = Gate()
    yield gate
    gate.end()


def torch_event(**options):
    return torch.Event(device="openreg", **options)


KINDS = pytest.mark.parametrize("make", [openreg.Event, torch_event], ids=["openreg", "torch"])


@pytest.mark.covers("module.Event")
@KINDS
def test_an_event_is_a_torch_event_of_the_device(make):
    event = make()
    assert isinstance(event, torch.Event)
    assert event.device.type == "openreg"
    assert isinstance(openreg.Event(), openreg.Event)


@KINDS
def test_an_event_that_was_not_recorded_is_done(make):
    event = make()
    assert event.query()
    event.synchronize()
    event.wait()


@pytest.mark.covers("guard.record", "guard.queryEvent", "guard.synchronizeEvent")
@KINDS
def test_an_event_is_done_when_the_work_before_it_is(make, gate, later_gate):
    event = make()
    gate.close()
    event.record()
    later_gate.close()
    assert not event.query()
    gate.open_soon()
    event.synchronize()
    assert gate.is_open
    assert event.query()
    assert not openreg.current_stream().query()


@pytest.mark.covers("guard.record")
@KINDS
def test_recording_again_moves_the_mark(make, gate):
    event = make()
    event.record()
    event.synchronize()
    gate.close()
    event.record()
    assert not event.query()


@pytest.mark.covers("guard.elapsedTime")
@KINDS
def test_the_time_between_events_is_that_of_the_work_between_them(make):
    start, end = make(enable_timing=True), make(enable_timing=True)
    start.record()
    openreg._sleep(SLEEP)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= SLEEP * 1e-6
    assert end.elapsed_time(start) == -start.elapsed_time(end)
    assert start.elapsed_time(start) == 0


def test_the_two_kinds_of_events_mix():
    ours, theirs = openreg.Event(enable_timing=True), torch_event(enable_timing=True)
    ours.record()
    openreg._sleep(SLEEP)
    theirs.record()
    theirs.synchronize()
    assert ours.elapsed_time(theirs) >= SLEEP * 1e-6


@pytest.mark.covers("module.Event")
def test_the_methods_of_torch_take_our_events():
    stream = torch.Stream("openreg")
    ours, theirs = openreg.Event(enable_timing=True), torch_event(enable_timing=True)
    assert stream.record_event(ours) is ours
    stream.record_event(theirs)
    stream.wait_event(ours)
    stream.synchronize()
    assert theirs.elapsed_time(ours) <= 0 <= ours.elapsed_time(theirs)


@pytest.mark.covers("module.Event")
def test_every_event_of_the_device_counts_as_one_of_the_class():
    class Named(openreg.Event):
        pass

    assert isinstance(openreg.Event(), openreg.Event)
    assert isinstance(torch_event(), openreg.Event)
    assert isinstance(Named(), openreg.Event)
    assert isinstance(Named(), Named)
    assert not isinstance(openreg.Event(), Named)
    assert not isinstance(torch.Stream("openreg"), openreg.Event)


@pytest.mark.covers("module.Event.from_ipc_handle")
@pytest.mark.parametrize(
    "share",
    [
        lambda: openreg.Event(interprocess=True),
        lambda: openreg.Event().ipc_handle(),
        lambda: openreg.Event.from_ipc_handle(torch.device("openreg:0"), b"handle"),
    ],
    ids=["interprocess", "ipc_handle", "from_ipc_handle"],
)
def test_events_are_not_shared_between_processes(share):
    with pytest.raises(NotImplementedError, match=r"shared between processes|ipc is not supported"):
        share()


@pytest.mark.covers("module.Event")
def test_a_graph_records_no_external_event():
    assert openreg.Event(external=False).query()
    with pytest.raises(NotImplementedError, match="leave out external=True"):
        openreg.Event(external=True)


@KINDS
def test_events_of_two_devices_have_no_time_between_them(make):
    start, end = make(enable_timing=True), make(enable_timing=True)
    start.record(openreg.default_stream(0))
    end.record(openreg.default_stream(1))
    openreg.synchronize(0)
    openreg.synchronize(1)
    with pytest.raises(ValueError, match="one device"):
        start.elapsed_time(end)


@pytest.mark.covers("guard.elapsedTime")
@KINDS
def test_time_needs_events_that_were_made_for_it(make):
    timed, plain = make(enable_timing=True), make()
    timed.record()
    plain.record()
    openreg.synchronize()
    for start, end in ((timed, plain), (plain, timed), (plain, plain)):
        with pytest.raises(ValueError, match="enable_timing=True"):
            start.elapsed_time(end)


@KINDS
def test_time_needs_events_that_were_recorded(make):
    recorded, empty = make(enable_timing=True), make(enable_timing=True)
    recorded.record()
    openreg.synchronize()
    for start, end in ((recorded, empty), (empty, recorded)):
        with pytest.raises(ValueError, match="must be recorded"):
            start.elapsed_time(end)


@KINDS
def test_time_needs_events_that_are_done(make, gate):
    start, end = make(enable_timing=True), make(enable_timing=True)
    start.record()
    gate.close()
    end.record()
    with pytest.raises(RuntimeError, match="must be completed"):
        start.elapsed_time(end)
    gate.open()
    openreg.synchronize()
    assert start.elapsed_time(end) > 0


@pytest.mark.parametrize("other", [None, 3, "event", object()])
def test_time_to_something_else_is_refused(other):
    class Named(openreg.Event):
        pass

    for event in (openreg.Event(enable_timing=True), Named(enable_timing=True)):
        with pytest.raises((TypeError, RuntimeError), match=r"torch\.Event"):
            event.elapsed_time(other)


@KINDS
def test_an_event_stays_on_the_device_of_its_first_record(make):
    event = make()
    event.record(openreg.default_stream(0))
    with pytest.raises(RuntimeError, match="device"):
        event.record(openreg.default_stream(1))
    event.record(openreg.default_stream(0))


@pytest.mark.covers("guard.block")
@KINDS
def test_waiting_holds_up_a_stream_of_any_device(make, gate):
    event = make()
    first, second = openreg.Stream(0), openreg.Stream(1)
    gate.close(first)
    event.record(first)
    event.wait(second)
    assert not second.query()
    gate.open_soon()
    second.synchronize()
    assert gate.is_open
    assert first.query()


def test_a_subclass_of_an_event_works_like_it():
    class Named(openreg.Event):
        name = "mark"

    event = Named(enable_timing=True)
    stream = openreg.Stream()
    assert stream.record_event(event) is event
    stream.wait_event(event)
    event.synchronize()
    assert event.elapsed_time(event) == 0
    later = stream.record_event(openreg.Event(enable_timing=True))
    later.synchronize()
    assert event.elapsed_time(later) >= 0
    assert event.name == "mark"


@pytest.mark.covers("guard.destroyEvent")
def test_a_destroyed_event_gives_its_handle_back(driver):
    event = openreg.Event()
    event.record()
    handle = event.event_id
    event.synchronize()
    assert driver.event_ready(handle)
    del event
    with pytest.raises(DriverError, match="event"):
        driver.event_ready(handle)


def test_an_event_never_says_done_before_its_kernel_ended(driver):
    ended = []  # by kernels that take half a millisecond, in which there are queries
    stream = openreg.Stream()
    for number in range(100):
        driver.launch(stream.native_handle, lambda: time.sleep(0.0005) or ended.append(None))
        event = stream.record_event()
        while not event.query():
            pass
        assert len(ended) == number + 1


def test_thousands_of_events_come_and_go():
    stream = openreg.Stream()
    for _ in range(2000):
        event = openreg.Event()
        event.record(stream)
    event.synchronize()
    assert event.query()
