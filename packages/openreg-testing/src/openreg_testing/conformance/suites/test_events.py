# SPDX-License-Identifier: BSD-3-Clause
"""Events: positions in a stream for which the host or a stream can wait, and the elapsed time between two.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` or ``streams`` are then skipped. Those with ``streams`` are also skipped on a backend without streams.
"""

import time

import pytest
import torch

from openreg_testing.conformance.harness import SIZE, DeviceUnderTest, covers, much_work


@covers("guard.record", "guard.synchronizeEvent", "guard.queryEvent")
def test_a_recorded_event_can_be_waited_for(streams: DeviceUnderTest) -> None:
    """After Event.synchronize() all tasks before the event are complete, and query() is true."""
    x = much_work(torch.ones(SIZE, device=streams.first))
    event = torch.Event(streams.first)
    event.record()
    event.synchronize()
    assert event.query() is True
    assert (x.cpu() == 1).all()


@covers("guard.record")
def test_an_event_belongs_to_its_device(streams: DeviceUnderTest) -> None:
    """The device of a recorded event is that of its stream."""
    event = torch.accelerator.current_stream().record_event()
    assert event.device == streams.first


@covers("guard.record")
def test_an_event_marks_the_stream_that_it_is_given(streams: DeviceUnderTest) -> None:
    """Event.record(stream) records on that stream, not on the current one; synchronize() waits for its tasks."""
    stream = torch.Stream(streams.first)
    x = torch.ones(SIZE, device=streams.first)
    streams.wait()
    with stream:
        y = much_work(x)
    event = torch.Event(streams.first)
    event.record(stream)
    event.synchronize()
    assert stream.query(), "the event was complete before earlier tasks of the stream on which it was recorded"
    assert (y.cpu() == 1).all()


@covers("guard.block")
def test_a_stream_waits_for_an_event(streams: DeviceUnderTest) -> None:
    """Kernels that are launched on a stream after event.wait(stream) run after the tasks before the event."""
    one, other = torch.Stream(streams.first), torch.Stream(streams.first)
    for _ in range(5):
        with one:
            x = much_work(torch.ones(SIZE, device=streams.first))
            x.fill_(2)
            event = one.record_event()
        event.wait(other)
        with other:
            y = x * 2
        other.synchronize()
        assert (y.cpu() == 4).all(), "a kernel ran before the event that its stream waits for"


@covers("guard.record")
def test_an_event_can_be_recorded_again(streams: DeviceUnderTest) -> None:
    """An event that is recorded a second time stands for its second position."""
    event = torch.Event(streams.first)
    event.record()
    event.synchronize()
    x = much_work(torch.ones(SIZE, device=streams.first))
    event.record()
    event.synchronize()
    assert torch.accelerator.current_stream().query(), "the event still stands for its first position"
    assert (x.cpu() == 1).all()


@covers("guard.record")
def test_an_event_stays_with_its_device(streams: DeviceUnderTest) -> None:
    """An event of one device cannot be recorded on a stream of another one."""
    other = torch.Stream(streams.second)
    event = torch.Event(streams.first)
    event.record()
    with pytest.raises((RuntimeError, ValueError)):
        event.record(other)


@covers("guard.elapsedTime")
def test_the_time_between_events_is_reported(streams: DeviceUnderTest) -> None:
    """elapsed_time() returns milliseconds: more than zero for kernels, and at most the time that the host waited."""
    x = torch.ones(SIZE, device=streams.first)
    first, second = (torch.Event(streams.first, enable_timing=True) for _ in range(2))
    streams.wait()
    start = time.perf_counter()
    first.record()
    much_work(x)
    second.record()
    second.synchronize()
    waited = (time.perf_counter() - start) * 1000
    found = first.elapsed_time(second)
    assert isinstance(found, float)
    assert found > 0, f"elapsed_time() returns {found} ms for kernels for which the host waited {waited:.2f} ms"
    assert found <= waited * 1.1 + 1, f"elapsed_time() returns {found} ms, but the host waited only {waited:.2f} ms"


@covers("guard.elapsedTime")
def test_time_needs_events_that_take_it(streams: DeviceUnderTest) -> None:
    """elapsed_time() of events without enable_timing raises an exception."""
    first, second = torch.Event(streams.first), torch.Event(streams.first)
    first.record()
    second.record()
    second.synchronize()
    with pytest.raises((RuntimeError, ValueError)):
        first.elapsed_time(second)


@covers("guard.destroyEvent")
def test_events_can_be_dropped(streams: DeviceUnderTest) -> None:
    """The device stays usable after thousands of events were recorded and deleted without a wait."""
    for _ in range(2000):
        torch.Event(streams.first).record()
    assert streams.tensor(1, 2).tolist() == [1, 2]


@covers("module.Event")
def test_the_module_has_an_event_class(accelerator: DeviceUnderTest) -> None:
    """torch.<device>.Event() returns a torch.Event of the device."""
    event = accelerator.module.Event()
    assert isinstance(event, torch.Event)
    event.record()
    event.synchronize()
    assert event.query() is True
