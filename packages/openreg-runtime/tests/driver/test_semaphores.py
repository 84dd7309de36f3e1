# SPDX-License-Identifier: BSD-3-Clause
"""A stream waits until the host has signaled a value of a semaphore, without blocking an engine or a host thread."""

from __future__ import annotations

import ctypes
import random
import re
import threading
from collections.abc import Iterator

import pytest

from ._platform import HAS_FORK
from .conftest import PATIENCE, Gate, RunScript
from .device_api import Api, DriverError, Error, Kind
from .peer import Peer
from .test_fork_and_exit import FORK

VALUE, HANDLE, STATE = Error.orErrorInvalidValue, Error.orErrorInvalidResourceHandle, Error.orErrorIllegalState


@pytest.fixture
def semaphore(api: Api) -> Iterator[int]:
    semaphore = api.semaphore()
    yield semaphore
    api.c.orSemaphoreSignal(semaphore, 1 << 63)  # whatever a failed test left waiting
    api.c.orDeviceSynchronize()
    api.c.orSemaphoreDestroy(semaphore)


def test_a_stream_goes_on_when_the_value_is_reached(api: Api, semaphore: int) -> None:
    ran: list[str] = []
    stream, other = api.stream(), api.stream()
    api.launch(stream, lambda: ran.append("before"))
    api.wait_semaphore(stream, semaphore, 2)
    api.launch(stream, lambda: ran.append("after"))
    api.launch(other, lambda: ran.append("other"))  # no engine is kept
    api.synchronize_stream(other)
    api.signal(semaphore, 1)
    assert not api.stream_ready(stream)
    assert sorted(ran) == ["before", "other"]
    api.signal(semaphore, 5)  # further than needed
    api.synchronize_stream(stream)
    assert ran[-1] == "after"
    assert api.semaphore_value(semaphore) == 5
    api.destroy_stream(stream)
    api.destroy_stream(other)


def test_a_value_that_was_reached_costs_nothing(api: Api, semaphore: int) -> None:
    api.signal(semaphore, 7)
    before = api.stream_stats(None).submitted
    for value in (0, 6, 7):
        api.wait_semaphore(None, semaphore, value)
    assert api.stream_stats(None).submitted == before
    first = api.semaphore(3)
    api.wait_semaphore(None, first, 3)
    assert api.stream_stats(None).submitted == before
    assert api.semaphore_value(first) == 3
    api.destroy_semaphore(first)


def test_streams_of_two_devices_wait_for_one_value(api: Api, semaphore: int) -> None:
    ran: list[int] = []
    streams = []
    for index in range(4):
        api.set_device(index % 2)
        streams.append(api.stream())
        api.wait_semaphore(streams[-1], semaphore, index + 1)
        api.launch(streams[-1], lambda i=index: ran.append(i))
    for index, stream in enumerate(streams):
        api.signal(semaphore, index + 1)
        api.synchronize_stream(stream)
        assert ran == list(range(index + 1))
        api.destroy_stream(stream)


def test_work_of_other_streams_waits_through_an_event(api: Api, semaphore: int) -> None:
    ran: list[int] = []
    first, second, event = api.stream(), api.stream(), api.event()
    api.wait_semaphore(first, semaphore, 1)
    api.record(event, first)
    api.wait_event(second, event)
    api.launch(second, lambda: ran.append(1))
    assert not api.stream_ready(second)
    api.signal(semaphore, 1)
    api.synchronize_stream(second)
    assert ran == [1]
    api.destroy_stream(first)
    api.destroy_stream(second)


def test_a_destroyed_stream_still_waits_and_then_runs(api: Api, semaphore: int) -> None:
    ran = threading.Event()
    stream = api.stream()
    api.wait_semaphore(stream, semaphore, 1)
    api.launch(stream, ran.set)
    api.destroy_stream(stream)
    api.signal(semaphore, 1)
    assert ran.wait(PATIENCE)


def test_10000_waits_end_once_each_in_random_order(api: Api) -> None:
    """Every wait has a semaphore of its own, which another thread signals; ten waits stand in each stream."""
    streams = [api.stream() for _ in range(1000)]
    semaphores = [api.semaphore() for _ in range(10000)]
    counts = [0] * len(semaphores)

    def count(index: int) -> None:
        assert api.semaphore_value(semaphores[index]) == 1  # no kernel ran before its signal
        counts[index] += 1

    for index, semaphore in enumerate(semaphores):
        api.wait_semaphore(streams[index % 1000], semaphore, 1)
        api.launch_host(streams[index % 1000], lambda i=index: count(i))
    order = list(range(len(semaphores)))
    random.Random(16).shuffle(order)
    thread = threading.Thread(target=lambda: [api.signal(semaphores[index], 1) for index in order])
    thread.start()
    api.synchronize()
    thread.join()
    assert counts == [1] * len(semaphores)
    assert sum(api.stream_stats(stream).submitted for stream in streams) == 20000
    for semaphore in semaphores:
        api.destroy_semaphore(semaphore)
    for stream in streams:
        api.destroy_stream(stream)


def test_values_of_one_semaphore_end_10000_waits(api: Api, semaphore: int) -> None:
    streams = [api.stream() for _ in range(100)]
    values = list(range(1, 10001))
    random.Random(5).shuffle(values)
    seen: list[int] = []
    for index in range(100):
        for value in sorted(values[index::100]):
            api.wait_semaphore(streams[index], semaphore, value)
            api.launch(streams[index], lambda v=value: seen.append(v))
    thread = threading.Thread(target=lambda: [api.signal(semaphore, value) for value in range(1, 10001)])
    thread.start()
    api.synchronize()
    thread.join()
    assert sorted(seen) == list(range(1, 10001))
    for stream in streams:
        api.destroy_stream(stream)


def test_a_lower_value_is_refused_and_the_same_one_is_not(api: Api, semaphore: int) -> None:
    api.signal(semaphore, 5)
    api.signal(semaphore, 5)
    with pytest.raises(DriverError, match=r"orSemaphoreSignal: .*\b4\b.*\b5\b.*greater") as caught:
        api.signal(semaphore, 4)
    assert caught.value.code == VALUE
    assert api.semaphore_value(semaphore) == 5


def test_a_failure_becomes_the_error_of_the_streams_that_wait(api: Api) -> None:
    ran: list[int] = []
    semaphore = api.semaphore()
    stream = api.stream()
    api.wait_semaphore(stream, semaphore, 1)
    api.launch(stream, lambda: ran.append(1))
    api.fail_semaphore(semaphore, Error.orErrorUnknown, b"rank 3 does not answer")
    with pytest.raises(DriverError, match=r"orErrorUnknown: rank 3 does not answer.*reset") as caught:
        api.synchronize_stream(stream)
    assert caught.value.code == Error.orErrorLaunchFailure
    assert ran == []
    api.set_device(1)
    api.synchronize()  # the other device did not wait
    api.set_device(0)
    api.reset()
    # Whoever waits later fails, too; what was reached before stays reached.
    api.wait_semaphore(stream, semaphore, 0)
    api.wait_semaphore(stream, semaphore, 1)
    assert api.c.orStreamSynchronize(stream) == Error.orErrorLaunchFailure
    api.reset()
    for call in (
        lambda: api.signal(semaphore, 1),
        lambda: api.fail_semaphore(semaphore),
        lambda: api.semaphore_value(semaphore),
    ):
        with pytest.raises(DriverError, match=r"orErrorUnknown: rank 3.*create") as caught:
            call()
        assert caught.value.code == STATE
    api.destroy_semaphore(semaphore)
    api.launch(stream, lambda: ran.append(2))
    api.synchronize()
    assert ran == [2]
    api.destroy_stream(stream)


def test_a_failure_without_a_message_has_the_sentence_of_its_code(api: Api) -> None:
    semaphore = api.semaphore()
    api.fail_semaphore(semaphore, Error.orErrorDeviceLost, None)
    api.wait_semaphore(None, semaphore, 1)
    with pytest.raises(
        DriverError, match=re.escape(f"orErrorDeviceLost: {api.c.orGetErrorString(Error.orErrorDeviceLost).decode()}")
    ):
        api.synchronize()
    api.destroy_semaphore(semaphore)


@pytest.mark.parametrize("status", [Error.orSuccess, Error.orErrorNotReady, -1, 18, 2**31 - 1])
def test_a_status_that_is_no_failure_is_refused(api: Api, semaphore: int, status: int) -> None:
    with pytest.raises(DriverError, match=rf"orSemaphoreFail: .*{int(status)}\b.*pass") as caught:
        api.fail_semaphore(semaphore, status)
    assert caught.value.code == VALUE
    api.signal(semaphore, 1)


def test_a_semaphore_that_is_waited_for_cannot_be_destroyed(api: Api, semaphore: int, gate: Gate) -> None:
    stream = api.stream()
    gate.close(stream)
    api.wait_semaphore(stream, semaphore, 1)  # the stream is not there yet
    api.wait_semaphore(None, semaphore, 2)
    for _ in range(2):
        with pytest.raises(DriverError, match=r"orSemaphoreDestroy: .*\b2 waits.*orSemaphoreSignal"):
            api.destroy_semaphore(semaphore)
    api.signal(semaphore, 1)
    gate.open()
    api.synchronize_stream(stream)
    with pytest.raises(DriverError, match=r"\b1 waits") as caught:
        api.destroy_semaphore(semaphore)
    assert caught.value.code == STATE
    api.signal(semaphore, 2)
    api.synchronize()
    api.destroy_semaphore(semaphore)
    with pytest.raises(DriverError, match="destroyed") as caught:
        api.signal(semaphore, 3)
    assert caught.value.code == HANDLE
    again = api.semaphore()  # takes the place of the old one, whose handle stays refused
    assert api.c.orStreamWaitSemaphore(None, semaphore, 1) == HANDLE
    api.destroy_semaphore(again)
    api.destroy_stream(stream)


def test_the_semaphore_of_another_process_is_refused(api: Api, peer: Peer) -> None:
    own = [api.semaphore() for _ in range(3)]
    foreign = [peer("api.semaphore()") for _ in range(3)]
    for handle in foreign:
        with pytest.raises(DriverError, match=r"process.*orSemaphoreCreate") as caught:
            api.signal(handle, 1)
        assert caught.value.code == HANDLE
        assert api.c.orStreamWaitSemaphore(None, handle, 1) == HANDLE
        assert api.c.orSemaphoreDestroy(handle) == HANDLE
    for handle in own:
        assert peer(f"api.c.orSemaphoreSignal({handle}, 1)") == HANDLE
        api.destroy_semaphore(handle)


def test_a_capture_refuses_it_and_is_invalidated(api: Api, semaphore: int) -> None:
    stream = api.stream()
    api.begin_capture(stream)
    with pytest.raises(DriverError, match=r"semaphore.*launches the graph") as caught:
        api.wait_semaphore(stream, semaphore, 1)
    assert caught.value.code == Error.orErrorStreamCaptureUnsupported
    with pytest.raises(DriverError, match="semaphore"):
        api.end_capture(stream)
    # Around the launch of a graph it is welcome.
    ran: list[int] = []
    api.begin_capture(stream)
    api.launch(stream, lambda: ran.append(1))
    graph = api.end_capture(stream)
    api.wait_semaphore(stream, semaphore, 1)
    api.launch_graph(graph, stream)
    assert not api.stream_ready(stream)
    api.signal(semaphore, 1)
    api.synchronize_stream(stream)
    assert ran == [1]
    api.destroy_graph(graph)
    api.destroy_stream(stream)


def test_a_failed_device_waits_no_longer(api: Api, semaphore: int, gate: Gate) -> None:
    """Neither the stream that waits already nor the one that comes to it later."""
    stream, late, broken = api.stream(), api.stream(), api.stream()
    gate.reason = "on purpose"
    gate.close(broken)
    api.wait_semaphore(stream, semaphore, 1)
    api.launch(late, lambda: None)
    api.wait_semaphore(late, semaphore, 1)
    assert not api.stream_ready(stream)
    gate.open()
    for each in (stream, late):
        assert api.c.orStreamSynchronize(each) == Error.orErrorLaunchFailure
    assert api.c.orStreamWaitSemaphore(stream, semaphore, 1) == Error.orErrorLaunchFailure
    api.reset()  # waits for nothing
    for each in (stream, late, broken):
        api.destroy_stream(each)


def test_a_reset_waits_for_a_healthy_device_until_the_semaphore_fails(api: Api) -> None:
    semaphore = api.semaphore()
    api.wait_semaphore(None, semaphore, 1)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(api.c.orDeviceReset()))
    thread.start()
    thread.join(0.2)
    assert codes == []
    api.fail_semaphore(semaphore)
    thread.join(PATIENCE)
    assert codes == [Error.orSuccess]
    api.synchronize()  # the reset took the failure with it
    api.destroy_semaphore(semaphore)


def test_a_lost_device_waits_no_longer(run_script: RunScript) -> None:
    done = run_script(
        """
        semaphore = api.semaphore()
        waiting, other = api.stream(), api.stream()
        api.wait_semaphore(waiting, semaphore, 1)
        api.set_faults("lose:1")
        api.launch(other, lambda: None)
        lost = Error.orErrorDeviceLost
        assert api.c.orStreamSynchronize(waiting) == lost
        assert api.c.orDeviceReset() == lost
        assert api.c.orStreamWaitSemaphore(waiting, semaphore, 1) == lost
        api.signal(semaphore, 1)
        api.destroy_semaphore(semaphore)
        print("ok")
        """
    )
    assert (done.output.split(), done.code) == (["ok"], 0), done.errors


@pytest.mark.parametrize("seed", ["", "7"])
def test_a_process_ends_with_a_stream_waiting(run_script: RunScript, seed: str) -> None:
    """So does a thread that waits for the stream."""
    done = run_script(
        """
        semaphore = api.semaphore()
        api.wait_semaphore(None, semaphore, 1)
        api.launch(None, lambda: print("never"))
        thread = threading.Thread(target=api.c.orStreamSynchronize, args=(None,), daemon=True)
        thread.start()
        time.sleep(0.05)  # likely the thread waits by now; the process ends as well if it does not
        print("end", flush=True)
        """,
        env={"OPENREG_SCHEDULE_SEED": seed} if seed else {},
    )
    assert (done.output.split(), done.code) == (["end"], 0), done.errors


@pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")
def test_a_child_cannot_end_the_wait_of_its_parent(run_script: RunScript) -> None:
    done = run_script(
        FORK
        + """
semaphore = api.semaphore()
ran = []
api.wait_semaphore(None, semaphore, 1)
api.launch(None, lambda: ran.append(1))
def child():
    assert api.c.orSemaphoreSignal(semaphore, 1) == Error.orErrorForkedChild
    assert api.c.orSemaphoreFail(semaphore, 1, None) == Error.orErrorForkedChild
    assert api.c.orSemaphoreDestroy(semaphore) == 0  # does nothing
    assert api.c.orThreadSetProgress(1) == 0
assert in_child(child) == 0
assert not api.stream_ready(None) and api.semaphore_value(semaphore) == 0
api.signal(semaphore, 1)
api.synchronize()
print(*ran)
"""
    )
    assert (done.output.split(), done.code) == (["1"], 0), done.errors


def test_signals_from_a_full_stream_free_those_who_launch(api: Api, semaphore: int) -> None:
    """A stream that waits holds as much as any other; then launches block until it goes on."""
    stream = api.stream()
    api.wait_semaphore(stream, semaphore, 1)
    callback = api.kernel(lambda: None)
    sent: list[int] = []

    def fill() -> None:
        for index in range(20000):
            api.call("orLaunchKernel", stream, ctypes.byref(callback))
            sent.append(index)

    thread = threading.Thread(target=fill)
    thread.start()
    thread.join(1)
    assert len(sent) < 20000
    api.signal(semaphore, 1)
    thread.join(PATIENCE)
    api.synchronize_stream(stream)
    assert len(sent) == 20000
    api.destroy_stream(stream)


def test_copies_wait_as_kernels_do(api: Api, semaphore: int) -> None:
    address, pinned = api.malloc(4096), api.malloc_host(4096)
    ctypes.memset(pinned, 1, 4096)
    api.upload(address, bytes(4096))
    api.wait_semaphore(None, semaphore, 1)
    api.copy_async(address, pinned, 4096, None, Kind.orMemcpyHostToDevice)
    ctypes.memset(pinned, 2, 4096)  # what arrived from elsewhere, before the signal
    api.signal(semaphore, 1)
    assert api.download(address, 4096) == b"\2" * 4096
    api.free(address)
    api.free_host(pinned)


@pytest.mark.parametrize("progress", [-1, 2, 2**31 - 1])
def test_a_thread_is_a_progress_thread_or_is_not(api: Api, progress: int) -> None:
    with pytest.raises(DriverError, match=r"orThreadSetProgress: argument `progress`.*pass 1") as caught:
        api.set_progress(progress)
    assert caught.value.code == VALUE
