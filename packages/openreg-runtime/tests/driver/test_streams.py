# SPDX-License-Identifier: BSD-3-Clause
"""Streams keep their order, honor priorities, wait for each other, and block launches while they are full."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import PATIENCE, Gate, RunScript
from .device_api import Api, DriverError, Error

CAPACITY = 16384  # entries of one stream, from openreg.h
LEAST, GREATEST = 0, -3


@pytest.fixture
def streams(api: Api) -> Iterator[list[int]]:
    """Two streams of device 0 and two of device 1."""
    made = []
    for device in (0, 0, 1, 1):
        api.set_device(device)
        made.append(api.stream())
    api.set_device(0)
    yield made
    for stream in made:
        api.destroy_stream(stream)


def test_a_stream_runs_in_order(api: Api, streams: list[int]) -> None:
    order: list[int] = []
    for index in range(300):
        if index % 2:
            api.launch(streams[0], lambda i=index: order.append(i))
        else:
            api.launch_host(streams[0], lambda i=index: order.append(i))
    api.synchronize_stream(streams[0])
    assert order == list(range(300))


def test_many_threads_share_a_stream(api: Api, streams: list[int]) -> None:
    order: list[tuple[int, int]] = []

    def launch(thread: int) -> None:
        for index in range(100):
            api.launch(streams[0], lambda i=index: order.append((thread, i)))

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    api.synchronize_stream(streams[0])
    for number in range(4):
        assert [index for thread, index in order if thread == number] == list(range(100))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")
def test_a_stream_costs_no_thread(api: Api) -> None:
    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    api.delay(None, 0)
    api.synchronize()
    before = threads()
    made = [api.stream() for _ in range(1000)]
    for stream in made:
        api.delay(stream, 0.001)
        api.launch(stream, lambda: None)
    assert threads() <= before  # one that earlier work had may end meanwhile
    api.synchronize()
    for stream in made:
        api.destroy_stream(stream)


def test_priorities_choose_between_ready_streams(api: Api, gate: Gate) -> None:
    priorities = [0, -1, -3, -2, 0, -3]
    made = [api.stream(priority) for priority in priorities]
    order: list[int] = []
    gate.close(None)
    for index, stream in enumerate(made):
        api.launch(stream, lambda i=index: order.append(i))
    gate.open()
    api.synchronize()
    assert order == [2, 5, 3, 1, 0, 4]  # by priority, then by age
    for stream in made:
        api.destroy_stream(stream)


@pytest.mark.parametrize(
    ("asked", "given"),
    [(0, 0), (-3, -3), (-1, -1), (1, 0), (-4, -3), (2**31 - 1, 0), (-(2**31), -3)],
)
def test_priorities_are_clamped(api: Api, asked: int, given: int) -> None:
    stream = api.stream(asked)
    assert api.stream_priority(stream) == given
    api.destroy_stream(stream)


def test_streams_of_one_priority_take_turns(api: Api, streams: list[int], gate: Gate) -> None:
    order: list[int] = []
    gate.close(api.default_stream(0))
    for _ in range(3):
        for index in (0, 2):
            api.launch(streams[index], lambda i=index: order.append(i))
    gate.open()
    api.synchronize_stream(streams[0])
    api.synchronize_stream(streams[2])
    assert order == [0, 2, 0, 2, 0, 2]


def test_delays_pass_together_and_hold_no_engine(run_script: RunScript) -> None:
    done = run_script(
        """
        streams = [api.stream() for _ in range(4)]
        for stream, seconds in zip(streams, (3600, 0.02, 7200, 0.01)):
            api.delay(stream, seconds)
            api.launch(stream, lambda: None)
        for stream in (streams[1], streams[3], api.stream()):
            api.launch(stream, lambda: None)
            api.synchronize_stream(stream)
        print([api.stream_ready(stream) for stream in streams])
        """
    )
    assert (done.output.strip(), done.code) == ("[False, True, False, True]", 0), done.errors


@pytest.mark.endurance  # a processor's time
def test_a_delay_of_centuries_does_not_spin(run_script: RunScript) -> None:
    done = run_script(
        """
        api.call("orStreamDelay", None, 2**63)
        begin = time.process_time()
        time.sleep(2)  # in which a timer that spins takes two seconds of a processor
        assert time.process_time() - begin < 1
        """
    )
    assert done.code == 0, done.errors


def test_a_delay_of_centuries_does_not_overflow(run_script: RunScript) -> None:
    done = run_script(
        """
        streams = [api.stream() for _ in range(4)]
        for stream, nanoseconds in zip(streams, (2**64 - 1, 2**63, 2**63 - 1, 10**18)):
            api.call("orStreamDelay", stream, nanoseconds)
        assert not any(api.stream_ready(stream) for stream in streams)
        api.delay(None, 0.01)  # the timer still serves others
        api.synchronize_stream(None)
        print("ok")
        """
    )
    assert (done.output.split(), done.code) == (["ok"], 0), done.errors


@pytest.mark.parametrize(("source", "target"), [(0, 1), (0, 2), (2, 0), (2, 3)])
def test_a_wait_orders_streams_of_any_device(
    api: Api, streams: list[int], gate: Gate, source: int, target: int
) -> None:
    order: list[str] = []
    event = api.event()
    first = Gate(api)
    first.close(streams[source])
    api.launch(streams[source], lambda: order.append("source"))
    api.record(event, streams[source])
    api.launch(streams[source], gate._run)  # behind the mark: not waited for
    api.wait_event(streams[target], event)
    assert not api.stream_ready(streams[target])
    api.delay(streams[target], 0)
    assert not api.stream_ready(streams[target])
    first.open()
    api.synchronize_stream(streams[target])
    assert order == ["source"]
    gate.open()
    api.launch(streams[target], lambda: order.append("target"))
    api.synchronize_stream(streams[target])
    assert order == ["source", "target"]
    api.destroy_event(event)


def test_a_wait_is_for_what_was_recorded_when_it_was_asked(api: Api, streams: list[int], gate: Gate) -> None:
    event = api.event()
    api.delay(streams[0], 0.01)
    api.record(event, streams[0])
    api.wait_event(streams[1], event)
    api.launch(streams[0], gate._run)
    api.record(event, streams[0])  # the mark moves behind the gate
    api.destroy_event(event)
    api.synchronize_stream(streams[1])
    assert not api.stream_ready(streams[0])  # the gate is closed, and was not waited for


def test_waiting_for_nothing_is_no_wait(api: Api, streams: list[int], gate: Gate) -> None:
    event = api.event()
    gate.close(streams[0])
    api.wait_event(streams[1], event)  # never recorded
    assert api.stream_ready(streams[1])
    api.record(event, streams[1])
    api.wait_event(streams[1], event)  # its own stream: already in order
    assert api.stream_ready(streams[1])
    api.destroy_event(event)


def test_a_query_never_answers_too_early(api: Api, streams: list[int]) -> None:
    done = 0

    def count() -> None:
        nonlocal done
        done += 1

    for launched in range(1, 301):
        api.launch(streams[0], count)
        if launched % 3 == 0:
            while not api.stream_ready(streams[0]):
                pass
            assert done == launched


def test_long_chains_of_waits_need_no_stack(run_script: RunScript) -> None:
    """10000 streams, each waiting for the one before, all released at once by the first."""
    done = run_script(
        """
        threading.stack_size(256 * 1024)
        streams = [api.stream() for _ in range(10000)]
        opened = threading.Event()
        api.launch(streams[0], lambda: opened.wait(120) and None)
        event = api.event()
        for before, after in zip(streams, streams[1:]):
            api.record(event, before)
            api.wait_event(after, event)
        assert not api.stream_ready(streams[-1])
        opened.set()
        api.synchronize_stream(streams[-1])
        api.synchronize()
        for stream in streams:
            api.destroy_stream(stream)
        print("ok")
        """
    )
    assert (done.output.split(), done.code) == (["ok"], 0), done.errors


def test_long_queues_of_waits_need_no_stack(api: Api, streams: list[int], gate: Gate) -> None:
    """Two streams that wait for each other by turns, 10000 times."""
    event = api.event()
    gate.close(streams[0])
    for index in range(10000):
        source, target = streams[index % 2], streams[1 - index % 2]
        api.record(event, source)
        api.wait_event(target, event)
    assert not api.stream_ready(streams[0])
    gate.open()
    api.synchronize()
    assert api.stream_ready(streams[0])
    assert api.stream_ready(streams[1])
    api.destroy_event(event)


class Filler:
    """A thread that enqueues pauses until a call fails or `total` are in."""

    def __init__(self, api: Api, stream: int, total: int) -> None:
        self.count = 0
        self.error: DriverError | None = None
        self._api, self._stream, self._total = api, stream, total
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            while self.count < self._total:
                self._api.delay(self._stream, 0)
                self.count += 1
        except DriverError as error:
            self.error = error

    def wait_until_blocked(self, expected: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.count < expected:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(0.03)  # in which a launch that does not block returns
        assert self.count == expected


def test_a_full_stream_blocks_the_launch_until_there_is_room(api: Api, streams: list[int], gate: Gate) -> None:
    gate.close(streams[0])
    filler = Filler(api, streams[0], CAPACITY + 100)
    filler.wait_until_blocked(CAPACITY - 1)  # the gate holds one place
    api.delay(streams[1], 0)  # another stream has room
    gate.open()
    filler.thread.join(PATIENCE)
    assert (filler.count, filler.error) == (CAPACITY + 100, None)
    api.synchronize()


def test_a_blocked_launch_fails_when_the_device_does(api: Api, streams: list[int], gate: Gate) -> None:
    gate.reason = "broken"
    gate.close(streams[0])
    filler = Filler(api, streams[0], CAPACITY + 100)
    filler.wait_until_blocked(CAPACITY - 1)
    gate.open()
    filler.thread.join(PATIENCE)
    assert filler.error is not None
    assert filler.error.code == Error.orErrorLaunchFailure
    assert filler.count == CAPACITY - 1  # a failed launch is not enqueued
    api.reset()


def test_a_blocked_launch_fails_when_the_stream_is_destroyed(api: Api, gate: Gate) -> None:
    stream = api.stream()
    gate.close(stream)
    filler = Filler(api, stream, CAPACITY + 100)
    filler.wait_until_blocked(CAPACITY - 1)
    api.destroy_stream(stream)
    gate.open()
    filler.thread.join(PATIENCE)
    assert filler.error is not None
    assert filler.error.code == Error.orErrorInvalidResourceHandle
    api.synchronize()
    first, second = api.stream(), api.stream()  # the slot is handed out once, not twice
    assert first & 0xFFFFFFFF != second & 0xFFFFFFFF
    api.destroy_stream(first)
    api.destroy_stream(second)


def test_destroying_lets_queued_work_run(api: Api, gate: Gate) -> None:
    ran: list[int] = []
    stream = api.stream()
    gate.close(stream)
    for index in range(3):
        api.launch(stream, lambda i=index: ran.append(i))
    api.destroy_stream(stream)
    for name in ("orStreamQuery", "orStreamSynchronize", "orStreamDestroy"):
        assert getattr(api.c, name)(stream) == Error.orErrorInvalidResourceHandle
    other = api.stream()
    assert other != stream
    gate.open()
    api.synchronize()
    assert ran == [0, 1, 2]
    api.destroy_stream(other)


def test_the_default_stream_cannot_be_destroyed(api: Api) -> None:
    for stream in (None, api.default_stream(0), api.default_stream(1)):
        with pytest.raises(DriverError, match=r"orStreamDestroy: .*device \d"):
            api.call("orStreamDestroy", stream)


def test_null_is_the_default_stream_of_the_current_device(api: Api) -> None:
    for device in range(2):
        gate = Gate(api)
        api.set_device(device)
        assert api.stream_device(None) == device
        assert api.stream_device(api.default_stream(device)) == device
        gate.close(api.default_stream(device))
        assert not api.stream_ready(None)
        api.set_device(1 - device)
        assert api.stream_ready(None)
        gate.open()
        api.set_device(device)
        api.synchronize()


def test_the_current_device_is_per_thread(api: Api) -> None:
    api.set_device(1)
    seen: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: seen.append((api.device(), api.stream_device(None))))
    thread.start()
    thread.join()
    assert seen == [(0, 0)]
    assert api.device() == 1


def test_a_stream_keeps_its_device(api: Api, streams: list[int]) -> None:
    seen: list[int] = []
    for current in (0, 1):
        api.set_device(current)
        assert [api.stream_device(stream) for stream in streams] == [0, 0, 1, 1]
        for stream in streams:
            api.launch(stream, lambda: seen.append(api.device()))
            api.synchronize_stream(stream)
    assert seen == [0, 0, 1, 1] * 2


def test_synchronizing_a_device_covers_all_its_streams(api: Api, streams: list[int], gate: Gate) -> None:
    for stream in streams[:2]:
        api.delay(stream, 0.02)
    gate.close(streams[2])  # of the other device
    api.synchronize()
    assert [api.stream_ready(stream) for stream in streams[:3]] == [True, True, False]
