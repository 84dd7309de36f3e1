# SPDX-License-Identifier: BSD-3-Clause
"""Events mark places in streams: queries, waits and times are right, also after an event or a stream was destroyed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from .conftest import PATIENCE, Gate
from .device_api import Api, DriverError, Error
from .device_header import SUBSCRIBE_TIME
from .observer import Observer


@pytest.fixture
def stream(api: Api) -> Iterator[int]:
    made = api.stream()
    yield made
    api.destroy_stream(made)


@pytest.fixture
def timed(api: Api) -> Iterator[list[int]]:
    made = [api.event(timed=True) for _ in range(2)]
    yield made
    for event in made:
        api.destroy_event(event)


@pytest.fixture
def event(api: Api) -> Iterator[int]:
    made = api.event()
    yield made
    api.destroy_event(made)


def test_an_event_that_was_never_recorded_is_ready(api: Api, event: int) -> None:
    assert api.event_ready(event)
    api.synchronize_event(event)


@pytest.mark.parametrize("with_time", [False, True])
def test_an_event_follows_the_work_before_it(api: Api, stream: int, gate: Gate, with_time: bool) -> None:
    event = api.event(timed=with_time)
    gate.close(stream)
    api.record(event, stream)
    assert not api.event_ready(event)
    gate.open()
    api.synchronize_event(event)
    assert api.event_ready(event)
    api.destroy_event(event)


def test_an_event_ignores_the_work_after_it(api: Api, stream: int, event: int, gate: Gate) -> None:
    api.record(event, stream)
    gate.close(stream)
    assert api.event_ready(event)
    api.synchronize_event(event)
    assert not api.stream_ready(stream)


def test_recording_again_moves_the_mark(api: Api, stream: int, event: int, gate: Gate) -> None:
    api.record(event, stream)
    assert api.event_ready(event)
    gate.close(stream)
    api.record(event, stream)
    assert not api.event_ready(event)
    api.record(event, api.default_stream(1))
    assert api.event_ready(event)


def test_elapsed_time(api: Api, stream: int, timed: list[int]) -> None:
    api.record(timed[0], stream)
    api.delay(stream, 0.02)
    api.record(timed[1], stream)
    api.synchronize_event(timed[1])
    assert api.elapsed(*timed) >= 20
    assert api.elapsed(*reversed(timed)) == -api.elapsed(*timed)
    assert api.elapsed(timed[0], timed[0]) == 0


def test_events_of_two_devices_have_no_time_between_them(api: Api, timed: list[int]) -> None:
    for device, event in enumerate(timed):
        api.record(event, api.default_stream(device))
        api.synchronize_event(event)
    for pair in (timed, list(reversed(timed))):
        with pytest.raises(DriverError, match="one device") as caught:
            api.elapsed(*pair)
        assert caught.value.code == Error.orErrorInvalidValue


def test_the_time_is_that_of_the_last_record(api: Api, stream: int, timed: list[int]) -> None:
    api.record(timed[0], stream)
    api.record(timed[1], stream)
    api.delay(stream, 0.01)
    api.record(timed[1], stream)
    api.delay(stream, 0.01)
    api.record(timed[0], stream)
    api.synchronize_stream(stream)
    assert api.elapsed(*timed) <= -10


def test_the_time_of_a_superseded_record_is_not_stored(api: Api, stream: int, timed: list[int], gate: Gate) -> None:
    start, event = timed
    gate.close(stream)
    api.record(event, stream)  # waits behind the gate
    for mark in (start, event):
        api.record(mark, api.default_stream(1))
    before = api.elapsed(start, event)
    gate.open()
    api.synchronize_stream(stream)
    assert api.elapsed(start, event) == before


def test_elapsed_time_of_pending_work_is_not_ready(api: Api, stream: int, timed: list[int], gate: Gate) -> None:
    api.record(timed[0], stream)
    gate.close(stream)
    api.record(timed[1], stream)
    for pair in (timed, list(reversed(timed))):
        with pytest.raises(DriverError) as caught:
            api.elapsed(*pair)
        assert caught.value.code == Error.orErrorNotReady


def test_elapsed_time_needs_timing_and_records(api: Api, stream: int, event: int, timed: list[int]) -> None:
    with pytest.raises(DriverError, match=r"start event.*record"):
        api.elapsed(*timed)
    api.record(timed[0], stream)
    with pytest.raises(DriverError, match=r"end event.*record"):
        api.elapsed(*timed)
    api.record(event, stream)
    for pair, which in [((event, timed[0]), "start"), ((timed[0], event), "end")]:
        with pytest.raises(DriverError, match=f"{which} .*orEventEnableTiming") as caught:
            api.elapsed(*pair)
        assert caught.value.code == Error.orErrorInvalidValue


def test_an_event_outlives_its_stream(api: Api, timed: list[int], gate: Gate) -> None:
    stream = api.stream()
    api.record(timed[0], stream)
    gate.close(stream)
    api.record(timed[1], stream)
    api.destroy_stream(stream)
    assert not api.event_ready(timed[1])
    gate.open()
    api.synchronize_event(timed[1])
    assert api.elapsed(*timed) > 0
    other = api.stream()  # takes the destroyed stream's place
    second = Gate(api)
    second.close(other)
    assert api.event_ready(timed[1])
    api.synchronize_event(timed[1])
    assert not api.stream_ready(other)
    second.open()
    api.synchronize()
    api.destroy_stream(other)


def test_an_event_belongs_to_the_device_it_was_recorded_on(api: Api, event: int) -> None:
    """Also when another device's stream took its stream's place."""
    stream = api.stream()
    api.record(event, stream)
    api.destroy_stream(stream)
    api.set_device(1)
    heir = api.stream()
    assert heir & 0xFFFFFFFF == stream & 0xFFFFFFFF, "the test needs the place to be reused"
    api.launch(heir, lambda: "broken")
    with pytest.raises(DriverError, match="broken"):
        api.synchronize()
    assert api.event_ready(event)
    api.synchronize_event(event)
    api.reset()
    api.destroy_stream(heir)


def test_a_destroyed_event_may_be_pending(api: Api, stream: int, gate: Gate) -> None:
    """The timestamp that is still queued reaches neither the event nor its heir."""
    gate.close(stream)
    doomed = api.event(timed=True)
    api.record(doomed, stream)
    api.destroy_event(doomed)
    assert api.c.orEventQuery(doomed) == Error.orErrorInvalidResourceHandle
    heir = api.event(timed=True)
    assert heir != doomed
    start = api.event(timed=True)
    for event in (start, heir):
        api.record(event, api.default_stream(1))
    api.synchronize_event(heir)
    before = api.elapsed(start, heir)
    gate.open()
    api.synchronize_stream(stream)
    assert api.elapsed(start, heir) == before
    api.destroy_event(heir)
    api.destroy_event(start)


def test_each_waiting_thread_wakes_for_its_own_event(api: Api, stream: int) -> None:
    """Waits are registered highest ticket first, and released one at a time."""
    gates = [Gate(api) for _ in range(8)]
    events = [api.event() for _ in gates]
    for gate, event in zip(gates, events, strict=True):
        api.launch(stream, gate._run)
        api.record(event, stream)
    woken = [threading.Event() for _ in events]

    def wait(index: int) -> None:
        api.synchronize_event(events[index])
        woken[index].set()

    threads = [threading.Thread(target=wait, args=(index,)) for index in reversed(range(8))]
    for thread in threads:
        thread.start()
        time.sleep(0.002)  # likely it waits by now; any other order has to pass as well
    for index, gate in enumerate(gates):
        gate.open()
        assert woken[index].wait(PATIENCE)
        assert [waiter.is_set() for waiter in woken] == [True] * (index + 1) + [False] * (7 - index)
    for thread in threads:
        thread.join()
    for event in events:
        api.destroy_event(event)


def test_handles_are_not_reused(api: Api) -> None:
    seen = set()
    for _ in range(1000):
        event = api.event()
        seen.add(event)
        api.destroy_event(event)
    assert len(seen) == 1000


def test_an_event_of_a_failed_device_says_so(api: Api, stream: int, event: int, gate: Gate) -> None:
    gate.reason = "broken"
    gate.close(stream)
    api.record(event, stream)
    gate.open()
    for call in (api.synchronize_event, api.event_ready, lambda e: api.record(e, stream)):
        with pytest.raises(DriverError, match="broken") as caught:
            call(event)
        assert caught.value.code == Error.orErrorLaunchFailure


def skipped(api: Api, stream: int, gate: Gate, *events: int) -> None:
    """Record the events behind a kernel that fails, and reset the device."""
    gate.reason = "broken"
    gate.close(stream)
    for event in events:
        api.record(event, stream)
    gate.open()
    api.reset()


@pytest.mark.parametrize("use", ["event_ready", "synchronize_event"])
def test_an_event_of_skipped_work_says_so_after_the_reset_too(
    api: Api, stream: int, event: int, gate: Gate, use: str
) -> None:
    skipped(api, stream, gate, event)
    for _ in range(2):
        with pytest.raises(DriverError, match=r"device 0 failed .* record the event again") as caught:
            getattr(api, use)(event)
        assert caught.value.code == Error.orErrorLaunchFailure
    api.record(event, stream)
    getattr(api, use)(event)
    assert api.event_ready(event)


@pytest.mark.parametrize("device", [0, 1])
def test_a_stream_that_waits_for_skipped_work_only_keeps_the_order(
    api: Api, stream: int, event: int, gate: Gate, device: int
) -> None:
    skipped(api, stream, gate, event)
    ran: list[int] = []
    api.wait_event(api.default_stream(device), event)
    api.launch(api.default_stream(device), lambda: ran.append(1))
    api.synchronize_stream(api.default_stream(device))
    assert ran == [1]


def test_a_wait_for_skipped_work_ends_when_the_device_is_through_with_it(
    api: Api, stream: int, event: int, gate: Gate
) -> None:
    delayed = api.stream()
    api.delay(delayed, 0.2)
    api.record(event, delayed)
    gate.reason = "broken"
    gate.close(stream)
    gate.open()
    with pytest.raises(DriverError, match="broken"):
        api.synchronize_stream(stream)
    with pytest.raises(DriverError, match="broken"):
        api.synchronize_event(event)
    stats = api.stream_stats(delayed)
    assert stats.completed == stats.submitted
    api.destroy_stream(delayed)


def test_skipped_work_has_no_time(api: Api, stream: int, timed: list[int], gate: Gate) -> None:
    skipped(api, stream, gate, *timed)
    with pytest.raises(DriverError, match="may have been skipped") as caught:
        api.elapsed(*timed)
    assert caught.value.code == Error.orErrorLaunchFailure


def test_an_event_that_was_passed_before_the_failure_stays_passed(
    api: Api, stream: int, event: int, gate: Gate
) -> None:
    api.launch(stream, lambda: None)
    api.record(event, stream)
    api.synchronize_event(event)
    unused, elsewhere = api.event(), api.event()
    api.record(elsewhere, api.default_stream(1))
    skipped(api, stream, gate)
    for each in (event, unused, elsewhere):
        assert api.event_ready(each)
        api.synchronize_event(each)
    api.destroy_event(unused)
    api.destroy_event(elsewhere)


def test_a_handle_made_after_the_failure_is_a_new_event(api: Api, stream: int, gate: Gate) -> None:
    old = api.event()
    skipped(api, stream, gate, old)
    api.destroy_event(old)
    new = api.event()  # the object of the old one
    assert api.event_ready(new)
    api.destroy_event(new)


@pytest.fixture
def deferred(api: Api) -> Iterator[None]:
    """No task runs before a thread waits for one."""
    observer = Observer(api, flags=SUBSCRIBE_TIME)
    yield
    observer.end()


@pytest.mark.usefixtures("deferred")
@pytest.mark.parametrize("what", ["event", "stream", "device"])
def test_a_wait_during_a_reset_by_another_thread_reports_the_failure(
    api: Api, stream: int, event: int, gate: Gate, what: str
) -> None:
    gate.reason = "broken"
    gate.enqueue(stream)
    api.record(event, stream)
    waits = {
        "event": lambda: api.c.orEventSynchronize(event),
        "stream": lambda: api.c.orStreamSynchronize(stream),
        "device": lambda: api.c.orDeviceSynchronize(),
    }
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(waits[what]())) for _ in range(4)]
    resets = [threading.Thread(target=api.c.orDeviceReset) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert gate.started.wait(PATIENCE)  # because one of them waits
    for thread in resets:
        thread.start()
    for thread in [*threads, *resets]:
        thread.join(0.01)  # likely all wait by now
    gate.open()
    for thread in [*threads, *resets]:
        thread.join(PATIENCE)
    assert len(answers) == 4
    # One that was kept from waiting until the reset finds the stream and the device idle.
    assert Error.orErrorLaunchFailure in answers
    assert set(answers) <= {Error.orErrorLaunchFailure, Error.orSuccess}
