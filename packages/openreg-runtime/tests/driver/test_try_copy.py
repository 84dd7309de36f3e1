# SPDX-License-Identifier: BSD-3-Clause
"""orTryMemcpyToHost() copies at once, or does nothing where orMemcpyAsync() could block or be seen."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from .conftest import Gate, RunScript
from .device_api import Api, DriverError, Error
from .observer import Observer

LIMIT = 4096  # bytes, from openreg.h
DATA = bytes(index % 251 for index in range(2 * LIMIT))


@pytest.fixture
def memory(api: Api) -> Iterator[int]:
    address = api.malloc(len(DATA))
    api.upload(address, DATA)
    yield address
    api.free(address)


def attempt(api: Api, address: int, size: int, stream: int | None = None) -> tuple[Error, bytes]:
    """What the call returns, and what the host memory of the copy holds after it."""
    host = ctypes.create_string_buffer(size)
    return Error(api.c.orTryMemcpyToHost(host, address, size, stream)), host.raw


@pytest.mark.parametrize("size", [1, 4, LIMIT])
def test_the_bytes_are_there_when_it_returns(api: Api, memory: int, size: int) -> None:
    assert attempt(api, memory + 5, size) == (Error.orSuccess, DATA[5 : 5 + size])


def test_it_counts_as_a_copy_that_needs_no_engine(api: Api, memory: int) -> None:
    copies, tasks = api.stats().copies, {name: engine.tasks for name, engine in api.engine_stats().items()}
    assert attempt(api, memory, 16)[0] == Error.orSuccess
    assert api.stats().copies == copies + 1
    assert {name: engine.tasks for name, engine in api.engine_stats().items()} == tasks


def test_a_longer_copy_would_hold_up_other_threads(api: Api, memory: int) -> None:
    assert attempt(api, memory, LIMIT + 1) == (Error.orErrorNotReady, bytes(LIMIT + 1))


def test_nothing_is_read_before_the_tasks_of_the_stream_are_complete(api: Api, memory: int, gate: Gate) -> None:
    stream = api.stream()
    gate.close(stream)
    api.c.orGetLastError()
    assert attempt(api, memory, 4, stream) == (Error.orErrorNotReady, bytes(4))
    assert api.c.orPeekAtLastError() == Error.orSuccess  # it is no failure
    assert attempt(api, memory, 4, None)[0] == Error.orSuccess  # another stream
    gate.open()
    api.synchronize_stream(stream)
    assert attempt(api, memory, 4, stream) == (Error.orSuccess, DATA[:4])
    api.destroy_stream(stream)


def test_a_capture_stays_valid(api: Api, memory: int) -> None:
    stream = api.stream()
    api.begin_capture(stream)
    assert attempt(api, memory, 4, stream)[0] == Error.orErrorNotReady
    api.launch(stream, lambda: None)
    graph = api.end_capture(stream)
    assert api.node_count(graph) == 1
    api.destroy_graph(graph)
    api.destroy_stream(stream)


def test_observers_miss_no_copy(api: Api, memory: int) -> None:
    observer = Observer(api)
    assert attempt(api, memory, 4)[0] == Error.orErrorNotReady
    assert observer.submits == []
    observer.end()
    assert attempt(api, memory, 4)[0] == Error.orSuccess


def test_an_armed_fault_waits_for_the_copy_that_it_counts(api: Api, memory: int) -> None:
    api.set_faults("copy:1")
    assert [attempt(api, memory, 4)[0] for _ in range(3)] == [Error.orErrorNotReady] * 3
    with pytest.raises(DriverError):
        api.download(memory, 4)
    api.set_faults(None)
    api.reset()


def test_the_copy_of_a_failed_device_is_left_to_the_call_that_reports_it(api: Api, memory: int) -> None:
    api.launch(None, lambda: "on purpose")
    with pytest.raises(DriverError):
        api.synchronize()
    assert attempt(api, memory, 4) == (Error.orErrorNotReady, bytes(4))
    with pytest.raises(DriverError) as failure:
        api.download(memory, 4)
    assert failure.value.code == Error.orErrorLaunchFailure
    api.reset()


def test_with_a_seed_the_schedule_orders_every_copy(run_script: RunScript) -> None:
    body = """
import ctypes
address = api.malloc(4096)
print(Error(api.c.orTryMemcpyToHost(ctypes.create_string_buffer(4), address, 4, None)).name)
"""
    done = run_script(body, env={"OPENREG_SCHEDULE_SEED": "1"})
    assert (done.output.split(), done.code) == (["orErrorNotReady"], 0), done.errors
