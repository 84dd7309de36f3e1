# SPDX-License-Identifier: BSD-3-Clause
"""Launches are asynchronous, release their state exactly once, and put the device into a sticky error if they fail."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import PATIENCE, Gate
from .device_api import Api, DriverError, Error, KernelFunction


def test_a_launch_returns_before_the_kernel_ends(api: Api, gate: Gate) -> None:
    gate.close(None)
    assert not api.stream_ready(None)
    assert not gate.opened.is_set()
    gate.open()
    api.synchronize()
    assert api.stream_ready(None)


def test_a_kernel_runs_on_a_thread_of_the_device_with_its_state(api: Api) -> None:
    seen: list[tuple[int | None, int, bool]] = []

    def run(state: int | None, message: int, size: int) -> int:
        seen.append((state, size, threading.get_ident() == main))
        return 0

    main = threading.get_ident()
    address = api.address(KernelFunction(run))
    api.launch(None, address, state=0x1234)
    api.synchronize()
    ((state, size, same_thread),) = seen
    assert state == 0x1234
    assert size >= 256
    assert not same_thread


def test_release_comes_once_and_after_the_kernel(api: Api) -> None:
    log: list[Any] = []
    for number in range(50):
        api.launch(
            None,
            lambda i=number: log.append(("run", i)),
            state=number + 1,
            release=lambda state: log.append(("release", state - 1)),
        )
    api.synchronize()
    assert log == [(what, i) for i in range(50) for what in ("run", "release")]


def test_release_comes_once_when_the_kernel_fails_or_is_skipped(api: Api, gate: Gate) -> None:
    log: list[int] = []
    ran: list[int] = []
    stream = api.stream()
    gate.close(None)
    api.launch(None, lambda: "broken", state=1, release=log.append)
    for number in (2, 3):
        api.launch(None, lambda: ran.append(1), state=number, release=log.append)
    gate.open()
    with pytest.raises(DriverError):
        api.synchronize()
    assert (log, ran) == ([1, 2, 3], [])
    api.reset()
    assert log == [1, 2, 3]
    api.destroy_stream(stream)


@pytest.mark.parametrize("reason", ["refused launch", "destroyed stream"])
def test_a_refused_launch_leaves_the_state_to_the_caller(api: Api, reason: str) -> None:
    log: list[int | None] = []
    stream = api.stream()
    if reason == "destroyed stream":
        api.destroy_stream(stream)
    else:
        api.launch(stream, lambda: "broken")
        with pytest.raises(DriverError):
            api.synchronize()
    with pytest.raises(DriverError):
        api.launch(stream, lambda: None, state=5, release=log.append)
    api.reset()
    assert log == []
    if reason != "destroyed stream":
        api.destroy_stream(stream)


def test_the_error_names_kernel_device_and_reason(api: Api) -> None:
    api.set_device(1)
    api.launch(None, lambda: "index 7 is out of bounds", name=b"aten::index")
    with pytest.raises(DriverError) as caught:
        api.synchronize()
    assert caught.value.code == Error.orErrorLaunchFailure
    for word in (
        "orDeviceSynchronize",
        "device 1",
        "'aten::index'",
        "index 7 is out of bounds",
        "reset",
    ):
        assert word in caught.value.message


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (b"", "orErrorNotSupported|not supported"),  # no reason given: that of the code
        (b"\xff" * 10, ""),  # not text
        (None, "y" * 200),  # all of the buffer, without an end
    ],
)
def test_a_careless_reason_is_survived(api: Api, write: bytes | None, expected: str) -> None:
    def run(_state: int | None, message: int, size: int) -> int:
        text = b"y" * size if write is None else write
        ctypes.memmove(message, text, len(text))
        return Error.orErrorNotSupported

    api.launch(None, api.address(KernelFunction(run)), name=b"careless")
    assert api.c.orDeviceSynchronize() == Error.orErrorLaunchFailure
    message = api.c.orGetLastErrorMessage().decode(errors="replace")
    assert "careless" in message
    assert any(word in message for word in expected.split("|"))
    assert len(message) < 2048


# Everything that enqueues or waits, on the current device.
REFUSED: dict[str, Callable[[Api, int, int, int], None]] = {
    "orDeviceSynchronize": lambda api, s, e, d: api.synchronize(),
    "orDeviceGetError": lambda api, s, e, d: api.call("orDeviceGetError", api.device()),
    "orMemcpy": lambda api, s, e, d: api.upload(d, b"x"),
    "orMemcpyAsync": lambda api, s, e, d: api.copy_async(d, b"x", 1, s),
    "orMemcpyAsync of nothing": lambda api, s, e, d: api.copy_async(d, b"", 0, s),
    "orMemset": lambda api, s, e, d: api.call("orMemset", d, 0, 1),
    "orMemsetAsync": lambda api, s, e, d: api.call("orMemsetAsync", d, 0, 1, s),
    "orStreamQuery": lambda api, s, e, d: api.stream_ready(s),
    "orStreamSynchronize": lambda api, s, e, d: api.synchronize_stream(s),
    "orStreamWaitEvent": lambda api, s, e, d: api.wait_event(s, e),
    "orEventRecord": lambda api, s, e, d: api.record(e, s),
    "orLaunchKernel": lambda api, s, e, d: api.launch(s, lambda: None),
    "orLaunchHostFunc": lambda api, s, e, d: api.launch_host(s, lambda: None),
    "orStreamDelay": lambda api, s, e, d: api.delay(s, 0),
}


def test_an_error_sticks_to_its_device_until_reset(api: Api) -> None:
    handles = []
    for device in range(2):
        api.set_device(device)
        handles.append((api.stream(), api.event(), api.malloc(64)))
    api.set_device(0)
    api.upload(handles[0][2], b"k" * 64)
    api.launch(handles[0][0], lambda: "broken", name=b"culprit")
    with pytest.raises(DriverError):
        api.synchronize()
    for attempt in range(2):  # it does not wear off
        for name, call in REFUSED.items():
            with pytest.raises(DriverError, match=f"{name.split()[0]}: .*culprit.*broken") as caught:
                call(api, *handles[0])
            assert caught.value.code == Error.orErrorLaunchFailure, (name, attempt)
    api.set_device(1)
    for call in REFUSED.values():
        call(api, *handles[1])
    api.synchronize()
    api.set_device(0)
    api.reset()
    assert api.download(handles[0][2], 64) == b"k" * 64  # memory, streams and events stay
    for call in REFUSED.values():
        call(api, *handles[0])
    for stream, event, address in handles:
        api.destroy_stream(stream)
        api.destroy_event(event)
        api.free(address)


def test_the_first_failure_is_kept(api: Api, gate: Gate) -> None:
    gate.close(None)
    for name in (b"first", b"second"):
        api.launch(None, lambda: "broken", name=name)
    gate.open()
    with pytest.raises(DriverError, match="'first'"):
        api.synchronize()


def test_skipped_work_has_no_effect_in_any_stream(api: Api, gate: Gate) -> None:
    address, pinned = api.malloc(64), api.malloc_host(64)
    api.upload(address, b"a" * 64)
    ctypes.memset(pinned, ord("p"), 64)
    streams = [api.stream(), api.stream()]
    ran: list[int] = []
    gate.reason = "broken"
    gate.close(streams[0])
    for stream in streams:
        api.call("orMemsetAsync", address, 0, 64, stream)
        api.copy_async(address, b"b" * 64, 64, stream)  # staged
        api.copy_async(address, pinned, 64, stream)
        api.launch(stream, lambda: ran.append(1))
        api.launch_host(stream, lambda: ran.append(2))
        api.delay(stream, 3600)
    gate.open()
    with pytest.raises(DriverError, match="broken"):
        api.synchronize()
    assert ran == []
    stats = api.stats(0)
    assert stats.launches == 1  # the gate itself
    api.reset()
    assert api.download(address, 64) == b"a" * 64
    for stream in streams:
        api.destroy_stream(stream)
    api.free(address)
    api.free_host(pinned)


def test_an_event_of_a_failed_device_does_not_stop_another_device(api: Api, gate: Gate) -> None:
    event = api.event()
    gate.reason = "broken"
    gate.close(api.default_stream(0))
    api.record(event, api.default_stream(0))
    api.wait_event(api.default_stream(1), event)
    ran: list[int] = []
    api.launch(api.default_stream(1), lambda: ran.append(1))
    gate.open()
    api.synchronize_stream(api.default_stream(1))
    assert ran == [1]
    api.destroy_event(event)


def test_memory_of_a_failed_device_can_be_freed(api: Api) -> None:
    address = api.malloc(64)
    api.launch(None, lambda: "broken")
    assert api.c.orDeviceSynchronize() == Error.orErrorLaunchFailure
    api.free(address)
    api.free(api.malloc(64))


def test_reset_waits_and_clears_the_counters(api: Api, gate: Gate) -> None:
    gate.close(None)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (api.reset(), done.set()))
    thread.start()
    assert not done.wait(0.03)
    gate.open()
    assert done.wait(PATIENCE)
    thread.join()
    stats = api.stats(0)
    assert (stats.launches, stats.busy_nanoseconds) == (0, 0)


def test_launches_and_busy_time_are_counted_per_device(api: Api) -> None:
    for _ in range(3):
        api.launch(api.default_stream(1), lambda: None)
    api.launch_host(api.default_stream(1), lambda: None)
    api.synchronize_stream(api.default_stream(1))
    assert api.stats(1).launches == 3
    assert api.stats(1).busy_nanoseconds > 0
    assert (api.stats(0).launches, api.stats(0).busy_nanoseconds) == (0, 0)


@pytest.mark.parametrize("stage", ["kernel", "host function"])
def test_a_wait_inside_a_kernel_is_refused_instead_of_hanging(api: Api, stage: str) -> None:
    device = api.malloc(1 << 20)
    source = ctypes.create_string_buffer(1 << 20)
    results: dict[str, int] = {}

    def misbehave() -> None:
        results["synchronize"] = api.c.orDeviceSynchronize()
        results["message"] = "must not wait" in api.message()
        results["copy"] = api.c.orMemcpy(device, source, 1 << 20, 4)
        results["pageable"] = api.c.orMemcpyAsync(device, source, 1 << 20, 4, None)
        results["free"] = api.c.orFree(device)

    (api.launch if stage == "kernel" else api.launch_host)(None, misbehave)
    api.synchronize()
    assert results.pop("message")
    assert set(results.values()) == {Error.orErrorNotSupported}
    assert api.stats(0).copies == 0  # a refused copy is not enqueued
    api.free(device)


def test_the_kernel_structure_may_go_after_the_launch(api: Api, gate: Gate) -> None:
    gate.close(None)
    ran: list[int] = []
    kernel = api.kernel(lambda: ran.append(1))
    api.call("orLaunchKernel", None, ctypes.byref(kernel))
    ctypes.memset(ctypes.byref(kernel), 0xFF, ctypes.sizeof(kernel))
    gate.open()
    api.synchronize()
    assert ran == [1]
