# SPDX-License-Identifier: BSD-3-Clause
"""orTryLaunchKernel() launches like orLaunchKernel(), or does nothing if a launch could block."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Gate, RunScript
from .device_api import Api, DriverError, Error, Kernel
from .device_header import Access
from .observer import Observer, operands

CAPACITY = 16384  # entries of one stream, from openreg.h

# What scripts launch with.
PREAMBLE = """
import ctypes
def attempt(stream, function):
    return api.c.orTryLaunchKernel(stream, ctypes.byref(api.kernel(function)))
"""


def attempt(api: Api, stream: int | None, kernel: Kernel) -> Error:
    return Error(api.c.orTryLaunchKernel(stream, ctypes.byref(kernel)))


@pytest.fixture
def stream(api: Api) -> Iterator[int]:
    stream = api.stream()
    yield stream
    api.destroy_stream(stream)


@pytest.fixture
def full(api: Api, stream: int, gate: Gate) -> int:
    """A stream with no place left, until the gate is opened."""
    gate.close(stream)
    for _ in range(CAPACITY - 1):  # the gate holds one place
        api.delay(stream, 0)
    return stream


def run(run_script: RunScript, body: str, env: dict[str, str]) -> str:
    done = run_script(PREAMBLE + body, env=env)
    assert done.code == 0, done.errors
    return done.output


def test_it_launches_where_there_is_room_and_owns_the_state(api: Api, stream: int) -> None:
    log: list[Any] = []
    kernel = api.kernel(lambda: log.append("run"), state=7, release=log.append)
    assert attempt(api, stream, kernel) == Error.orSuccess
    api.synchronize()
    assert log == ["run", 7]


def test_operands_are_reported_if_the_caller_passes_them(api: Api) -> None:
    observer = Observer(api)
    address = api.malloc(4096)
    kernel = api.kernel(lambda: None)
    ranges = operands((address, 16, Access.orAccessWrite))
    api.call("orTryLaunchKernelWithOperands", None, ctypes.byref(kernel), ranges, 1)
    api.call("orTryLaunchKernelWithOperands", None, ctypes.byref(kernel), None, 0)
    assert attempt(api, None, kernel) == Error.orSuccess
    assert [task.operands for task in observer.submits] == [[(address, 16, Access.orAccessWrite)], [], None]
    observer.end()
    api.free(address)


def test_a_full_stream_takes_nothing_until_it_has_room(api: Api, full: int, gate: Gate) -> None:
    log: list[Any] = []
    kernel = api.kernel(lambda: log.append("run"), state=7, release=log.append)
    api.c.orGetLastError()
    assert [attempt(api, full, kernel) for _ in range(3)] == [Error.orErrorNotReady] * 3
    assert api.c.orPeekAtLastError() == Error.orSuccess  # it is no failure
    assert api.stream_stats(full).submitted == CAPACITY
    other = api.stream()
    assert attempt(api, other, api.kernel(lambda: None)) == Error.orSuccess
    gate.open()
    api.synchronize()
    assert log == []
    assert attempt(api, full, kernel) == Error.orSuccess
    api.synchronize()
    assert log == ["run", 7]
    api.destroy_stream(other)


def test_a_full_stream_takes_a_mark_that_needs_no_place(api: Api, full: int, gate: Gate) -> None:
    """An event without timing is a note of how far the queue has come."""
    event = api.event()
    api.record(event, full)
    assert not api.event_ready(event)
    assert api.stream_stats(full).submitted == CAPACITY
    gate.open()
    api.synchronize_event(event)
    assert api.stream_stats(full).completed == CAPACITY
    api.destroy_event(event)


def test_a_stream_that_waits_for_a_semaphore_is_full_like_any_other(api: Api, stream: int) -> None:
    semaphore = api.semaphore()
    api.wait_semaphore(stream, semaphore, 1)
    kernel = api.kernel(lambda: None)
    answers = [attempt(api, stream, kernel) for _ in range(CAPACITY)]
    assert answers == [*[Error.orSuccess] * (CAPACITY - 1), Error.orErrorNotReady]
    api.signal(semaphore, 1)
    api.synchronize_stream(stream)
    assert attempt(api, stream, kernel) == Error.orSuccess
    api.synchronize()
    api.destroy_semaphore(semaphore)


def test_what_is_wrong_is_refused_also_where_there_is_no_room(api: Api, full: int, gate: Gate) -> None:
    assert api.c.orTryLaunchKernel(full, None) == Error.orErrorInvalidValue
    assert "orTryLaunchKernel: argument `kernel`" in api.message()
    kernel, bad = api.kernel(lambda: None), operands((0, 4, Access.orAccessRead))
    answer = api.c.orTryLaunchKernelWithOperands(full, ctypes.byref(kernel), bad, 1)
    assert answer == Error.orErrorInvalidValue
    assert "orTryLaunchKernelWithOperands: operand 0 has 4 bytes at a null address" in api.message()
    gate.open()


def test_a_destroyed_stream_is_refused_also_when_it_was_full(api: Api, gate: Gate) -> None:
    stream = api.stream()
    gate.close(stream)
    for _ in range(CAPACITY - 1):
        api.delay(stream, 0)
    api.destroy_stream(stream)
    assert attempt(api, stream, api.kernel(lambda: None)) == Error.orErrorInvalidResourceHandle
    assert "orTryLaunchKernel: stream" in api.message()
    gate.open()


def test_a_failed_device_refuses_it(api: Api, stream: int) -> None:
    api.launch(stream, lambda: "on purpose")
    with pytest.raises(DriverError):
        api.synchronize()
    assert attempt(api, stream, api.kernel(lambda: None)) == Error.orErrorLaunchFailure
    assert "orTryLaunchKernel: device 0 is in an error state" in api.message()
    api.reset()


def test_a_capture_records_it(api: Api, stream: int) -> None:
    ran: list[int] = []
    api.begin_capture(stream)
    assert attempt(api, stream, api.kernel(lambda: ran.append(1))) == Error.orSuccess
    graph = api.end_capture(stream)
    assert (api.node_count(graph), ran) == (1, [])
    for _ in range(3):
        api.launch_graph(graph, stream)
    api.synchronize()
    assert ran == [1, 1, 1]
    api.destroy_graph(graph)


def test_an_invalidated_capture_refuses_it(api: Api, stream: int) -> None:
    api.begin_capture(stream)
    assert api.c.orStreamSynchronize(stream) == Error.orErrorStreamCaptureUnsupported
    assert attempt(api, stream, api.kernel(lambda: None)) == Error.orErrorStreamCaptureInvalidated
    with pytest.raises(DriverError):
        api.end_capture(stream)


def test_with_launch_blocking_only_a_capture_takes_it(run_script: RunScript) -> None:
    body = """
ran, stream = [], api.stream()
print(Error(attempt(stream, lambda: ran.append(1))).name, ran)
api.begin_capture(stream)
print(Error(attempt(stream, lambda: ran.append(2))).name, ran)
api.launch_graph(api.end_capture(stream), stream)
print(ran)
"""
    output = run(run_script, body, {"OPENREG_LAUNCH_BLOCKING": "1"})
    assert output.splitlines() == ["orErrorNotReady []", "orSuccess []", "[2]"]


LETTERS = """
order, streams = [], [api.stream(), api.stream()]
not_ready = 0
for index in range(400):
    for name, stream in zip("ab", streams):
        run = lambda text=f"{name}{index}": order.append(text)
        code = ANSWER
        not_ready += code == Error.orErrorNotReady
        if code:
            api.launch(stream, run)
api.synchronize()
print(" ".join(order), not_ready > 0)
"""


def test_with_a_seed_the_order_is_that_of_launches(run_script: RunScript) -> None:
    """When deferred tasks have to run first, the attempt does nothing, and the launch decides the order."""
    seed = {"OPENREG_SCHEDULE_SEED": "5"}
    *launched, _ = run(run_script, LETTERS.replace("ANSWER", "1"), seed).split()
    *attempted, met_a_backlog = run(run_script, LETTERS.replace("ANSWER", "attempt(stream, run)"), seed).split()
    assert len(attempted) == 800
    assert attempted == launched
    assert met_a_backlog == "True"


def test_with_a_seed_an_attempt_lets_nothing_run(run_script: RunScript) -> None:
    body = """
ran, stream = [], api.stream()
answers = [attempt(stream, lambda: ran.append(1)) for _ in range(1000)]
print(answers.index(Error.orErrorNotReady), {*answers[256:]} == {Error.orErrorNotReady}, ran)
api.synchronize()
print(len(ran))
"""
    assert run(run_script, body, {"OPENREG_SCHEDULE_SEED": "1"}).splitlines() == ["256 True []", "256"]


def test_a_lost_device_refuses_it(run_script: RunScript) -> None:
    body = """
api.set_faults("lose:1")
print(Error(attempt(None, lambda: None)).name)
api.c.orDeviceSynchronize()
print(Error(attempt(None, lambda: None)).name, "lost" in api.message())
"""
    assert run(run_script, body, {}).splitlines() == ["orSuccess", "orErrorDeviceLost True"]
