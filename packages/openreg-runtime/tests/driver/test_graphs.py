# SPDX-License-Identifier: BSD-3-Clause
"""A graph runs the captured tasks at each launch, and what cannot be captured is refused."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import PATIENCE, Gate, RunScript
from .device_api import Api, CaptureMode, CaptureStatus, DriverError, Error

UNSUPPORTED = Error.orErrorStreamCaptureUnsupported
INVALIDATED = Error.orErrorStreamCaptureInvalidated


@pytest.fixture
def streams(api: Api) -> Iterator[list[int]]:
    made = [api.stream(), api.stream(), api.stream()]
    yield made
    for stream in made:
        if api.capture_status(stream) != CaptureStatus.orStreamCaptureStatusNone:
            api.c.orStreamEndCapture(stream, ctypes.create_string_buffer(8))
        api.destroy_stream(stream)


def refused(code: Error, call: Callable[[], object]) -> str:
    with pytest.raises(DriverError) as caught:
        call()
    assert caught.value.code == code
    return caught.value.message


def test_recorded_work_runs_on_each_launch_and_not_before(api: Api, streams: list[int]) -> None:
    order: list[str] = []
    api.begin_capture(streams[0])
    for name in "abc":
        api.launch(streams[0], lambda text=name: order.append(text))
    graph = api.end_capture(streams[0])
    api.synchronize()
    assert order == []
    assert api.node_count(graph) == 3
    for _ in range(3):
        api.launch_graph(graph, streams[0])
    api.synchronize()
    assert order == list("abc" * 3)
    api.destroy_graph(graph)


def test_copies_fills_and_host_functions_are_recorded(api: Api, streams: list[int]) -> None:
    source, target, block = api.malloc_host(8), api.malloc_host(8), api.malloc(4096)
    calls: list[int] = []
    api.begin_capture(streams[0])
    api.call("orMemsetAsync", block, 0, 16, streams[0])
    api.copy_async(block, source, 4, streams[0])
    api.copy_async(block + 8, block, 8, streams[0])
    api.copy_async(target, block + 8, 8, streams[0])
    api.delay(streams[0], 0.001)
    api.launch_host(streams[0], lambda: calls.append(1))
    graph = api.end_capture(streams[0])
    for text in (b"abcd", b"wxyz"):  # what the source holds at the launch counts, not at the capture
        ctypes.memmove(source, text, 4)
        api.launch_graph(graph, streams[0])
        api.synchronize()
        assert ctypes.string_at(target, 8) == text + bytes(4)
    assert calls == [1, 1]
    api.destroy_graph(graph)
    api.free(block)
    api.free_host(source)
    api.free_host(target)


def test_the_graph_owns_the_state_of_its_kernels(api: Api, streams: list[int]) -> None:
    released: list[int | None] = []
    api.begin_capture(streams[0])
    api.launch(streams[0], lambda: None, state=5, release=released.append)
    graph = api.end_capture(streams[0])
    for _ in range(2):
        api.launch_graph(graph, streams[0])
    api.synchronize()
    assert released == []
    api.destroy_graph(graph)
    assert released == [5]


def test_a_destroyed_graph_finishes_its_launches(api: Api, streams: list[int], gate: Gate) -> None:
    ran: list[int] = []
    released = threading.Event()
    api.begin_capture(streams[0])
    api.launch(streams[0], lambda: ran.append(1), state=5, release=lambda _: released.set())
    graph = api.end_capture(streams[0])
    gate.close(streams[0])
    api.launch_graph(graph, streams[0])
    api.destroy_graph(graph)
    refused(Error.orErrorInvalidResourceHandle, lambda: api.launch_graph(graph, streams[0]))
    assert not released.is_set()
    gate.open()
    api.synchronize()
    assert ran == [1]
    assert released.wait(PATIENCE)


def fork_and_join(api: Api, streams: list[int], order: list[str]) -> None:
    """A diamond over three streams, whose middle is one delay and one kernel."""
    fork, left, right = api.event(), api.event(), api.event()
    api.launch(streams[0], lambda: order.append("begin"))
    api.record(fork, streams[0])
    for stream in streams[1:]:
        api.wait_event(stream, fork)
    api.delay(streams[1], 0.02)
    api.launch(streams[1], lambda: order.append("slow"))
    api.launch(streams[2], lambda: order.append("fast"))
    api.record(left, streams[1])
    api.record(right, streams[2])
    api.wait_event(streams[0], left)
    api.wait_event(streams[0], right)
    api.launch(streams[0], lambda: order.append("end"))
    for event in (fork, left, right):
        api.destroy_event(event)


def test_streams_join_a_capture_by_waiting_and_stay_parallel(api: Api, streams: list[int]) -> None:
    order: list[str] = []
    api.begin_capture(streams[0])
    fork_and_join(api, streams, order)
    assert {api.capture_status(stream) for stream in streams} == {CaptureStatus.orStreamCaptureStatusActive}
    assert len({api.capture_id(stream) for stream in streams}) == 1
    graph = api.end_capture(streams[0])
    assert {api.capture_status(stream) for stream in streams} == {CaptureStatus.orStreamCaptureStatusNone}
    assert {api.capture_id(stream) for stream in streams} == {0}
    for _ in range(3):
        api.launch_graph(graph, streams[0])
    api.synchronize()
    assert order == ["begin", "fast", "slow", "end"] * 3
    api.destroy_graph(graph)


def test_a_stream_that_is_not_joined_back_invalidates_the_capture(api: Api, streams: list[int]) -> None:
    event = api.event()
    api.begin_capture(streams[0])
    api.record(event, streams[0])
    api.wait_event(streams[1], event)
    api.launch(streams[1], lambda: None)
    assert "joined back" in refused(INVALIDATED, lambda: api.end_capture(streams[0]))
    assert api.capture_status(streams[1]) == CaptureStatus.orStreamCaptureStatusNone
    api.destroy_event(event)


def test_launches_of_one_graph_follow_one_another(api: Api, streams: list[int], gate: Gate) -> None:
    order: list[str] = []
    api.begin_capture(streams[0])
    api.launch(streams[0], lambda: order.append("graph"))
    graph = api.end_capture(streams[0])
    api.delay(streams[0], 0.05)
    api.launch_graph(graph, streams[0])
    api.launch_graph(graph, streams[1])
    api.launch(streams[1], lambda: order.append("after"))
    api.synchronize()
    assert order == ["graph", "graph", "after"]
    api.destroy_graph(graph)


@pytest.mark.parametrize("mode", list(CaptureMode))
def test_waiting_for_a_capturing_stream_is_refused_and_invalidates(
    api: Api, streams: list[int], mode: CaptureMode
) -> None:
    api.begin_capture(streams[0], mode)
    assert "capturing" in refused(UNSUPPORTED, lambda: api.synchronize_stream(streams[0]))
    assert api.capture_status(streams[0]) == CaptureStatus.orStreamCaptureStatusInvalidated
    refused(INVALIDATED, lambda: api.launch(streams[0], lambda: None))
    refused(INVALIDATED, lambda: api.end_capture(streams[0]))
    api.launch(streams[0], lambda: None)
    api.synchronize()


def test_an_invalidated_capture_takes_no_waits_for_events(api: Api, streams: list[int]) -> None:
    event = api.event()
    api.begin_capture(streams[0])
    api.record(event, streams[0])
    refused(UNSUPPORTED, lambda: api.synchronize_stream(streams[0]))
    for stream in streams[:2]:  # the capturing stream, and one that would join the capture
        refused(INVALIDATED, lambda stream=stream: api.wait_event(stream, event))
    refused(INVALIDATED, lambda: api.end_capture(streams[0]))
    api.launch(streams[1], lambda: None)
    api.synchronize()
    api.destroy_event(event)


def test_a_query_of_a_capturing_stream_is_refused(api: Api, streams: list[int]) -> None:
    api.begin_capture(streams[0])
    refused(UNSUPPORTED, lambda: api.stream_ready(streams[0]))


def test_a_captured_event_cannot_be_asked(api: Api, streams: list[int]) -> None:
    event = api.event(timed=True)
    api.begin_capture(streams[0])
    api.record(event, streams[0])
    graph = api.end_capture(streams[0])
    for call in (
        lambda: api.event_ready(event),
        lambda: api.synchronize_event(event),
        lambda: api.elapsed(event, event),
        lambda: api.wait_event(streams[1], event),
    ):
        refused(UNSUPPORTED, call)
    api.record(event, streams[1])
    api.synchronize_event(event)
    assert api.event_ready(event)
    api.destroy_event(event)
    api.destroy_graph(graph)


def test_pageable_copies_are_refused(api: Api, streams: list[int]) -> None:
    block, host = api.malloc(4096), ctypes.create_string_buffer(8)
    for destination, source in ((block, host), (host, block)):
        api.begin_capture(streams[0])
        assert "pageable" in refused(UNSUPPORTED, lambda d=destination, s=source: api.copy_async(d, s, 8, streams[0]))
        refused(INVALIDATED, lambda: api.end_capture(streams[0]))
    api.free(block)


def test_copies_and_fills_that_wait_are_refused_in_every_mode(api: Api) -> None:
    """They run on the default stream, here the capturing one, and must not return before they are done."""
    block = api.malloc(4096)
    for call in (
        lambda: api.call("orMemcpy", block + 8, block, 8, 3),
        lambda: api.call("orMemset", block, 0, 8),
    ):
        api.begin_capture(None, CaptureMode.orStreamCaptureModeRelaxed)
        refused(UNSUPPORTED, call)
        refused(INVALIDATED, lambda: api.end_capture(None))
    api.free(block)


def test_a_capture_cannot_wait_for_work_outside(api: Api, streams: list[int], gate: Gate) -> None:
    event = api.event()
    gate.close(streams[1])
    api.record(event, streams[1])
    api.begin_capture(streams[0])
    assert "not part of the capture" in refused(UNSUPPORTED, lambda: api.wait_event(streams[0], event))
    gate.open()
    api.destroy_event(event)


def test_modes_say_who_may_wait_for_the_device(api: Api, streams: list[int]) -> None:
    def from_a_thread() -> list[Error]:
        codes: list[Error] = []
        thread = threading.Thread(target=lambda: codes.append(Error(api.c.orDeviceSynchronize())))
        thread.start()
        thread.join()
        return codes

    ok = Error.orSuccess
    expected = {
        CaptureMode.orStreamCaptureModeGlobal: (UNSUPPORTED, UNSUPPORTED),
        CaptureMode.orStreamCaptureModeThreadLocal: (UNSUPPORTED, ok),
        CaptureMode.orStreamCaptureModeRelaxed: (ok, ok),
    }
    for mode, codes in expected.items():
        api.begin_capture(streams[0], mode)
        assert (Error(api.c.orDeviceSynchronize()), *from_a_thread()) == codes
        api.destroy_graph(api.end_capture(streams[0]))  # refusing them did not invalidate it


def test_a_device_without_capture_may_be_waited_for(api: Api, streams: list[int]) -> None:
    api.begin_capture(streams[0])
    api.set_device(1)
    api.synchronize()
    api.set_device(0)
    api.destroy_graph(api.end_capture(streams[0]))


def test_captures_begin_and_end_where_they_should(api: Api, streams: list[int]) -> None:
    state = Error.orErrorIllegalState
    event = api.event()
    refused(state, lambda: api.end_capture(streams[0]))
    api.begin_capture(streams[0])
    refused(state, lambda: api.begin_capture(streams[0]))
    refused(UNSUPPORTED, lambda: api.destroy_stream(streams[0]))
    api.record(event, streams[0])
    api.wait_event(streams[1], event)
    assert "began on another stream" in refused(state, lambda: api.end_capture(streams[1]))
    api.destroy_event(event)


def test_a_graph_is_not_launched_into_a_capture(api: Api, streams: list[int]) -> None:
    api.begin_capture(streams[0])
    graph = api.end_capture(streams[0])
    api.begin_capture(streams[1])
    refused(UNSUPPORTED, lambda: api.launch_graph(graph, streams[1]))
    api.destroy_graph(api.end_capture(streams[1]))
    api.destroy_graph(graph)


def test_a_failing_kernel_of_a_graph_fails_the_device(api: Api, streams: list[int]) -> None:
    api.begin_capture(streams[0])
    api.launch(streams[0], lambda: "broken", name=b"in graph")
    graph = api.end_capture(streams[0])
    api.launch_graph(graph, streams[0])
    assert "kernel 'in graph' failed: broken" in refused(Error.orErrorLaunchFailure, api.synchronize)
    api.reset()
    api.destroy_graph(graph)


def test_a_graph_can_be_drawn(api: Api, streams: list[int], tmp_path: Path) -> None:
    order: list[str] = []
    api.begin_capture(streams[0])
    fork_and_join(api, streams, order)
    graph = api.end_capture(streams[0])
    api.print_graph(graph, tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph")
    assert text.count("test kernel") == 4
    assert text.count("dashed") == 4  # two waits for the fork, two for the join
    assert "delay of 20000000 ns" in text
    api.destroy_graph(graph)


def test_a_graph_may_be_longer_than_a_queue(api: Api, streams: list[int]) -> None:
    block = api.malloc(4096)
    api.begin_capture(streams[0])
    for value in range(20_000):
        api.call("orMemsetAsync", block, value % 251, 1, streams[0])
    graph = api.end_capture(streams[0])
    assert api.node_count(graph) == 20_000
    for _ in range(2):
        api.launch_graph(graph, streams[0])
    api.synchronize()
    assert api.download(block, 1) == bytes([19_999 % 251])
    api.destroy_graph(graph)
    api.free(block)


SETTINGS_AND_GRAPHS = """
    order, stream = [], api.stream()
    api.begin_capture(stream)
    for name in "ab":
        api.launch(stream, lambda text=name: order.append(text))
    graph = api.end_capture(stream)
    print(order)
    for _ in range(2):
        api.launch_graph(graph, stream)
    {after}
    print(order)
"""


def test_blocking_launches_record_in_a_capture_and_wait_for_a_graph(run_script: RunScript) -> None:
    done = run_script(SETTINGS_AND_GRAPHS.format(after=""), env={"OPENREG_LAUNCH_BLOCKING": "1"})
    assert done.output.splitlines() == ["[]", "['a', 'b', 'a', 'b']"], done.errors


def test_a_seed_orders_graphs_too(run_script: RunScript) -> None:
    done = run_script(SETTINGS_AND_GRAPHS.format(after="api.synchronize()"), env={"OPENREG_SCHEDULE_SEED": "3"})
    assert done.output.splitlines() == ["[]", "['a', 'b', 'a', 'b']"], done.errors


def test_faults_count_what_a_graph_launches(run_script: RunScript) -> None:
    after = """
    try:
        api.synchronize()
    except DriverError as error:
        print(error.code.name)
    """
    done = run_script(SETTINGS_AND_GRAPHS.format(after=after), env={"OPENREG_FAULTS": "launch:4"})
    assert done.output.splitlines() == ["[]", "orErrorLaunchFailure", "['a', 'b', 'a']"], done.errors
