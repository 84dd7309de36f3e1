# SPDX-License-Identifier: BSD-3-Clause
"""Observers get each task when it is submitted and when it is complete, exactly once, with its operands."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator

import pytest

from .conftest import MIB, PATIENCE, Gate, RunScript
from .device_api import Api, DriverError, Error, Kind, MemoryType
from .device_header import Access
from .observer import Observer, operands
from .peer import Peer

READ, WRITE, BOTH = Access.orAccessRead, Access.orAccessWrite, Access.orAccessReadWrite


@pytest.fixture
def observer(api: Api) -> Iterator[Observer]:
    observer = Observer(api)
    yield observer
    if api.c.orUnsubscribe(observer.handle) != Error.orErrorInvalidResourceHandle:
        assert len(observer.completes) == len(observer.submits)


def test_a_task_is_reported_from_submit_to_complete(api: Api, observer: Observer, gate: Gate) -> None:
    stream = api.stream()
    gate.close(stream)
    api.launch(stream, lambda: None, name=b"work")
    (first, second) = observer.submits
    assert (first.name, second.name) == (b"gate", b"work")
    assert (first.device, first.stream) == (0, stream)
    assert (second.queue, second.ticket) == (first.queue, first.ticket + 1)
    assert second.correlation == first.correlation + 1
    assert observer.completes == []
    gate.open()
    api.synchronize_stream(stream)
    done = observer.complete_of(second)
    assert (done.kind, done.device, done.stream, done.queue, done.ticket) == (
        second.kind,
        0,
        stream,
        second.queue,
        second.ticket,
    )
    assert (done.engine, done.status, done.skipped) == (0, Error.orSuccess, 0)
    assert observer.complete_of(first).end <= done.begin <= done.end
    api.destroy_stream(stream)


def test_all_kinds_of_entries(api: Api, observer: Observer, gate: Gate) -> None:
    address, pinned = api.malloc(4096), api.malloc_host(4096)
    first, second, semaphore = api.stream(), api.stream(), api.semaphore()
    event = api.event(timed=True)
    gate.close(first)
    api.copy_async(address, pinned, 16, first)
    api.call("orMemsetAsync", address, 7, 32, first)
    api.launch_host(first, lambda: None)
    api.delay(first, 1e-6)
    api.record(event, first)
    api.wait_event(second, event)
    api.wait_semaphore(second, semaphore, 3)
    assert observer.kinds() == [
        "Kernel",
        "Copy",
        "Fill",
        "HostFunction",
        "Delay",
        "EventRecord",
        "EventWait",
        "SemaphoreWait",
    ]
    copy, fill, _, _, record, wait, held = observer.submits[1:]
    assert (copy.bytes, copy.operands) == (16, [(address, 16, WRITE), (pinned, 16, READ)])
    assert (fill.bytes, fill.operands) == (32, [(address, 32, WRITE)])
    assert record.event == event
    assert (wait.waited_queue, wait.waited_ticket) == (record.queue, record.ticket)
    assert (held.semaphore, held.value) == (semaphore, 3)
    gate.open()
    api.signal(semaphore, 3)
    api.synchronize()
    engines = [observer.complete_of(task).engine for task in observer.submits]
    assert engines == [0, 0, 0, 0, -1, -1, -1, -1]
    assert all(observer.complete_of(task).begin <= observer.complete_of(task).end for task in observer.submits)
    assert {observer.complete_of(task).status for task in observer.submits} == {Error.orSuccess}
    large = api.malloc(2 * MIB)
    api.call("orMemcpyAsync", large, large + MIB, MIB, Kind.orMemcpyDeviceToDevice, first)
    api.synchronize()
    assert observer.complete_of(observer.submits[-1]).engine == 1  # the copy engine
    for block in (address, large):
        api.free(block)
    api.free_host(pinned)
    api.destroy_semaphore(semaphore)
    api.destroy_stream(first)
    api.destroy_stream(second)


def test_operands_of_a_launch(api: Api, observer: Observer) -> None:
    address = api.malloc(4096)
    kernel = api.kernel(lambda: None)
    ranges = operands((address, 16, READ), (address + 64, 8, WRITE), (address + 128, 4, BOTH))
    api.call("orLaunchKernelWithOperands", None, ctypes.byref(kernel), ranges, 3)
    api.call("orLaunchKernelWithOperands", None, ctypes.byref(kernel), None, 0)
    api.call("orLaunchKernel", None, ctypes.byref(kernel))
    told, none, unknown = observer.submits
    assert told.operands == [(address, 16, READ), (address + 64, 8, WRITE), (address + 128, 4, BOTH)]
    assert none.operands == []
    assert unknown.operands is None
    api.free(address)


def test_a_staged_source_is_no_operand(api: Api, observer: Observer) -> None:
    """The bytes of a small pageable source are read before the call returns."""
    address, source = api.malloc(4096), ctypes.create_string_buffer(b"x" * 100)
    api.copy_async(address, source, 100, None)
    api.upload(address, b"waits")
    staged, waited = observer.submits
    assert staged.operands == [(address, 100, WRITE)]
    assert [access for *_, access in waited.operands] == [WRITE, READ]
    api.free(address)


def test_operands_are_wanted_while_a_subscriber_or_a_capture_needs_them(api: Api) -> None:
    assert api.c.orOperandsWanted() == 0
    without = Observer(api, flags=0)
    assert api.c.orOperandsWanted() == 0
    observer = Observer(api)
    assert api.c.orOperandsWanted() == 1
    kernel, ranges = api.kernel(lambda: None), operands((0, 0, READ))
    api.call("orLaunchKernelWithOperands", None, ctypes.byref(kernel), ranges, 1)
    assert observer.submits[0].operands == [(None, 0, READ)]
    address = api.malloc(4096)
    api.call("orMemsetAsync", address, 0, 16, None)
    assert [task.operands for task in without.submits] == [
        None,
        [(address, 16, WRITE)],
    ]  # the driver knows those of a fill
    api.free(address)
    observer.end()
    assert api.c.orOperandsWanted() == 0
    without.end()
    stream = api.stream()
    api.begin_capture(stream)
    assert api.c.orOperandsWanted() == 1
    api.destroy_graph(api.end_capture(stream))
    assert api.c.orOperandsWanted() == 0
    api.destroy_stream(stream)


def test_each_subscription_has_its_own_correlation_ids(api: Api) -> None:
    plain = Observer(api)
    renumbering = Observer(api, renumber=lambda number: 1_000_000 - number)
    late: list[Observer] = []
    for index in range(5):
        api.launch(None, lambda: None)
        if index == 2:
            late.append(Observer(api, renumber=lambda number: 7 * number))
    api.synchronize()
    assert [len(each.completes) for each in (plain, renumbering, late[0])] == [5, 5, 2]
    numbers = [task.correlation for task in plain.submits]
    assert numbers == [task.correlation for task in renumbering.submits]  # before the callback changes it
    assert [task.correlation for task in plain.completes] == numbers
    assert [task.correlation for task in renumbering.completes] == [1_000_000 - number for number in numbers]
    assert [task.correlation for task in late[0].completes] == [7 * number for number in numbers[3:]]
    for each in (plain, renumbering, late[0]):
        each.end()


def test_a_replay_reports_each_task_of_the_graph(api: Api) -> None:
    """No observer was subscribed during the capture, and the operands are reported all the same."""
    address = api.malloc(4096)
    stream, second, fork, join = api.stream(), api.stream(), api.event(), api.event()
    kernel = api.kernel(lambda: None, name=b"node")
    api.begin_capture(stream)
    ranges = operands((address, 16, BOTH))
    api.call("orLaunchKernelWithOperands", stream, ctypes.byref(kernel), ranges, 1)
    api.record(fork, stream)
    api.wait_event(second, fork)
    api.call("orMemsetAsync", address, 7, 32, second)
    api.record(join, second)
    api.wait_event(stream, join)
    graph = api.end_capture(stream)
    observer = Observer(api)
    for _ in range(2):
        api.launch_graph(graph, stream)
    api.synchronize()
    assert observer.kinds() == ["Kernel", "EventWait", "Fill", "EventWait"] * 2
    node, fork_wait, fill, join_wait = observer.submits[:4]
    assert (node.name, node.stream, node.operands) == (b"node", stream, [(address, 16, BOTH)])
    assert fill.operands == [(address, 32, WRITE)]
    assert fill.queue != node.queue
    assert (fork_wait.queue, fork_wait.waited_queue, fork_wait.waited_ticket) == (fill.queue, node.queue, node.ticket)
    assert (join_wait.queue, join_wait.waited_queue, join_wait.waited_ticket) == (node.queue, fill.queue, fill.ticket)
    launches = [task.graph_launch for task in observer.submits]
    assert launches[0] > 0
    assert launches == [launches[0]] * 4 + [launches[0] + 1] * 4
    observer.end()
    api.destroy_graph(graph)
    api.destroy_stream(stream)
    api.destroy_stream(second)
    api.free(address)


def test_a_capture_itself_submits_nothing(api: Api, observer: Observer) -> None:
    stream = api.stream()
    api.begin_capture(stream)
    api.launch(stream, lambda: None)
    api.destroy_graph(api.end_capture(stream))
    assert (observer.submits, observer.completes) == ([], [])
    api.destroy_stream(stream)


def test_failed_and_skipped_tasks_say_so(api: Api, observer: Observer, gate: Gate) -> None:
    stream, event, semaphore = api.stream(), api.event(timed=True), api.semaphore()
    gate.reason = "on purpose"
    gate.close(stream)
    api.launch(stream, lambda: None)
    api.launch_host(stream, lambda: None)
    api.delay(stream, 3600)
    api.wait_semaphore(stream, semaphore, 1)
    api.record(event, stream)
    gate.open()
    assert api.c.orStreamSynchronize(stream) == Error.orErrorLaunchFailure
    told = [observer.complete_of(task) for task in observer.submits]
    failure = Error.orErrorLaunchFailure
    assert [task.status for task in told] == [failure] * 5 + [Error.orSuccess]
    assert [task.skipped for task in told] == [0, 1, 1, 1, 1, 0]
    api.reset()
    api.wait_semaphore(stream, semaphore, 1)
    api.fail_semaphore(semaphore)
    assert api.c.orStreamSynchronize(stream) == failure
    last = observer.complete_of(observer.submits[-1])
    assert (last.status, last.skipped) == (failure, 0)
    api.reset()
    api.destroy_semaphore(semaphore)
    api.destroy_stream(stream)


def test_a_lost_device_completes_what_was_submitted(run_script: RunScript) -> None:
    done = run_script(
        """
        from driver.observer import Observer
        observer, semaphore, held = Observer(api), api.semaphore(), api.stream()
        api.wait_semaphore(held, semaphore, 1)
        api.launch(held, lambda: None)
        api.set_faults("lose:1")
        api.launch(None, lambda: None)
        api.c.orStreamSynchronize(held)
        api.c.orStreamSynchronize(None)
        print(*[(Error(task.status).name, task.skipped) for task in map(observer.complete_of, observer.submits)])
        observer.end()
        """
    )
    lost = "('orErrorDeviceLost', {})"
    assert done.output.strip() == " ".join(lost.format(skipped) for skipped in (1, 1, 0)), done.errors


def test_what_orders_work_is_reported(api: Api, observer: Observer) -> None:
    first, second = api.stream(), api.stream()
    event, never, semaphore = api.event(), api.event(), api.semaphore()
    api.launch(first, lambda: None)
    (task,) = observer.submits
    place = (first, task.queue, task.ticket)
    api.record(event, first)
    api.wait_event(second, event)
    api.synchronize_event(event)
    api.synchronize_stream(first)
    api.synchronize()
    assert api.event_ready(event)
    assert api.stream_ready(first)
    assert api.event_ready(never)
    api.synchronize_event(never)
    api.signal(semaphore, 5)
    api.wait_semaphore(second, semaphore, 4)

    record, wait, host, stream, device, asked, asked_stream, unmarked, unwaited, signal, value = observer.syncs
    assert [sync.kind for sync in observer.syncs] == [
        "EventRecord",
        "EventWait",
        "Event",
        "Stream",
        "Device",
        "EventQuery",
        "StreamQuery",
        "EventQuery",
        "Event",
        "SemaphoreSignal",
        "SemaphoreWait",
    ]
    for sync in (record, wait, host, stream, asked, asked_stream):
        assert (sync.stream, sync.queue, sync.ticket, sync.device) == (*place, 0)
    for sync in (record, wait, host, asked):
        assert sync.event == event
    assert (wait.waiting, value.waiting, record.waiting) == (second, second, None)
    assert wait.waiting_queue == value.waiting_queue != record.queue
    assert (device.stream, device.device) == (None, 0)
    assert (unmarked.stream, unmarked.event, unwaited.stream) == (None, never, None)
    assert (signal.semaphore, signal.value, signal.device) == (semaphore, 5, -1)
    assert (value.semaphore, value.value) == (semaphore, 4)
    api.destroy_semaphore(semaphore)
    api.destroy_stream(first)
    api.destroy_stream(second)


def test_a_query_that_finds_work_is_not_reported(api: Api, observer: Observer, gate: Gate) -> None:
    event = api.event()
    gate.close(None)
    api.record(event, None)
    assert not api.stream_ready(None)
    assert not api.event_ready(event)
    assert [sync.kind for sync in observer.syncs] == ["EventRecord"]
    gate.open()


def test_calls_that_block_and_releases_are_synchronization(api: Api, observer: Observer) -> None:
    address, pinned = api.malloc(4096), api.malloc_host(4096)
    api.upload(address, b"blocks")
    assert [sync.kind for sync in observer.syncs] == ["Stream"]
    api.free(address)
    assert [(sync.kind, sync.device) for sync in observer.syncs[1:]] == [("Device", 0)]
    api.free_host(pinned)
    assert [(sync.kind, sync.device) for sync in observer.syncs[2:]] == [("Device", 0), ("Device", 1)]
    api.c.orFree(None)
    assert len(observer.syncs) == 4


def test_memory_is_reported_when_it_comes_and_before_it_goes(api: Api, observer: Observer) -> None:
    api.set_device(1)
    address = api.malloc(5000)
    pinned = api.malloc_host(10)
    assert api.malloc(0) == 0
    api.free(address)
    api.free_host(pinned)
    page = observer.memories[1].size
    assert [(told.action, told.type, told.device, told.address, told.size) for told in observer.memories] == [
        ("Allocated", MemoryType.orMemoryTypeDevice, 1, address, 8192 if page == 4096 else page),
        ("Allocated", MemoryType.orMemoryTypeHost, -1, pinned, page),
        ("Released", MemoryType.orMemoryTypeDevice, 1, address, 8192 if page == 4096 else page),
        ("Released", MemoryType.orMemoryTypeHost, -1, pinned, page),
    ]


def test_memory_of_another_process_is_reported(api: Api, observer: Observer, peer: Peer) -> None:
    foreign = peer("api.malloc(4096)")
    address = api.open(peer(f"api.export({foreign})"))
    api.close(address)
    peer(f"api.free({foreign})")
    assert [(told.action, told.address, told.device) for told in observer.memories] == [
        ("Imported", address, 0),
        ("Closed", address, 0),
    ]
    assert observer.memories[0].size == observer.memories[1].size >= 4096


def test_unsubscribing_waits_for_what_was_seen(api: Api, gate: Gate) -> None:
    observer = Observer(api)
    ended = threading.Event()
    gate.close(None)
    api.launch(None, lambda: None)

    def end() -> None:
        observer.end()
        ended.set()

    thread = threading.Thread(target=end)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while api.c.orOperandsWanted():  # as long as the thread has not begun to unsubscribe
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert not ended.wait(0.2)  # in which one that does not wait would end
    # Refused from the beginning on, and work enqueued from now on is not its business.
    assert api.c.orUnsubscribe(observer.handle) == Error.orErrorInvalidResourceHandle
    api.launch(None, lambda: None)
    gate.open()
    thread.join(PATIENCE)
    assert ended.is_set()
    assert (len(observer.submits), len(observer.completes)) == (2, 2)
    api.synchronize()
    assert len(observer.completes) == 2


def test_a_process_ends_with_an_observer(run_script: RunScript) -> None:
    done = run_script(
        """
        from driver.observer import Observer
        observer = Observer(api)
        api.delay(None, 3600)
        api.launch(None, lambda: None)
        threading.Thread(target=api.c.orUnsubscribe, args=(observer.handle,), daemon=True).start()
        time.sleep(0.05)  # likely the thread waits by now; the process ends as well if it does not
        print(len(observer.submits), flush=True)
        """
    )
    assert (done.output.split(), done.code) == (["2"], 0), done.errors


# What a callback must not do, and what is refused.


@pytest.mark.parametrize("callback", ["submit", "complete", "sync", "memory"])
def test_a_callback_cannot_use_the_device(api: Api, callback: str) -> None:
    """Launch, wait, allocate, unsubscribe itself, subscribe again: refused, each by name, and the program goes on."""
    answers: dict[str, tuple[int, str]] = {}
    kernel, out = api.kernel(lambda: None), ctypes.create_string_buffer(64)

    class Reckless(Observer):
        def _try(self, told: str) -> None:
            if told != callback or not hasattr(self, "handle"):
                return
            for name, arguments in {
                "orLaunchKernel": (None, ctypes.byref(kernel)),
                "orStreamSynchronize": (None,),
                "orDeviceSynchronize": (),
                "orMalloc": (out, 4096),
                "orFree": (4096,),
                "orSemaphoreCreate": (out, 0),
                "orUnsubscribe": (self.handle,),
                "orSubscribe": (ctypes.byref(self.table), None, out),
            }.items():
                answers[name] = (getattr(api.c, name)(*arguments), api.message())
            answers["allowed"] = (api.c.orGetDevice(out) or api.c.orGetDeviceCount(out), "")

        def _submit(self, *arguments: object) -> None:
            self._try("submit")

        def _complete(self, *arguments: object) -> None:
            self._try("complete")

        def _sync(self, *arguments: object) -> None:
            self._try("sync")

        def _memory(self, *arguments: object) -> None:
            self._try("memory")

    reckless = Reckless(api)
    api.launch(None, lambda: None)
    api.synchronize()
    api.free(api.malloc(4096))
    api.call("orUnsubscribe", reckless.handle)
    assert answers.pop("allowed") == (0, "")
    assert len(answers) == 8
    for name, (code, message) in answers.items():
        assert code == Error.orErrorNotSupported
        assert message.startswith(f"{name}: ")
        assert "callback" in message
        assert "another thread" in message


def test_a_table_that_does_not_fit_is_refused(api: Api) -> None:
    observer = Observer(api)
    observer.end()
    out = ctypes.c_void_p()
    table = observer.table
    size = table.size
    callbacks = {name: getattr(table, name) for name in observer.names}

    def refused(words: str, **changes: int | None) -> None:
        for name, value in changes.items():
            setattr(table, name, value)
        with pytest.raises(DriverError, match=f"orSubscribe: {words}") as caught:
            api.call("orSubscribe", ctypes.byref(table), None, ctypes.byref(out))
        assert caught.value.code == Error.orErrorInvalidValue
        assert out.value is None
        table.size, table.version, table.flags = size, 1, 1
        for name, value in callbacks.items():
            setattr(table, name, value)

    refused(rf"the table has {size - 1} bytes.*\b{size};.*`size`", size=size - 1)
    refused(rf"the table has {size + 8} bytes", size=size + 8)
    refused("the table has 0 bytes", size=0)
    refused("the table has version 0.*version 1;.*OPENREG_SUBSCRIBER_VERSION", version=0)
    refused("the table has version 2", version=2)
    refused("flags 4 .*orSubscribeOperands and orSubscribeTime", flags=4)
    refused(".*callbacks.*null", **dict.fromkeys(callbacks, None))
    for arguments in ((None, None, ctypes.byref(out)), (ctypes.byref(table), None, None)):
        with pytest.raises(DriverError, match=r"orSubscribe: argument `(table|subscription)` is null"):
            api.call("orSubscribe", *arguments)


def test_unsubscribing_twice_is_refused(api: Api) -> None:
    observer = Observer(api)
    observer.end()
    with pytest.raises(DriverError, match=r"orUnsubscribe: .*ended.*pass") as caught:
        api.call("orUnsubscribe", observer.handle)
    assert caught.value.code == Error.orErrorInvalidResourceHandle
    again = Observer(api)  # takes the place of the first, whose handle stays refused
    assert api.c.orUnsubscribe(observer.handle) == Error.orErrorInvalidResourceHandle
    again.end()


@pytest.mark.parametrize(
    ("ranges", "count", "words"),
    [
        (None, 1, "argument `operands` is null.*count is 1"),
        (((4096, 8, 0),), 1, "operand 0 .*access 0;.*orAccess"),
        (((4096, 8, 1), (4096, 8, 4)), 2, "operand 1 .*access 4"),
        (((0, 8, 1),), 1, "operand 0 .*8 bytes.*null"),
    ],
)
def test_operands_that_cannot_be_are_refused(
    api: Api, ranges: tuple[tuple[int, int, Access], ...] | None, count: int, words: str
) -> None:
    kernel = api.kernel(lambda: None)
    array = None if ranges is None else operands(*ranges)
    with pytest.raises(DriverError, match=f"orLaunchKernelWithOperands: {words}") as caught:
        api.call("orLaunchKernelWithOperands", None, ctypes.byref(kernel), array, count)
    assert caught.value.code == Error.orErrorInvalidValue


def test_ten_thousand_tasks_and_observers_that_come_and_go(api: Api) -> None:
    streams = [api.stream() for _ in range(4)]
    kernel = ctypes.byref(api.kernel(lambda: None))
    total = 0
    for _ in range(10):
        observers = [Observer(api), Observer(api, names=("complete",), flags=0)]
        for index in range(1000):
            api.call("orLaunchKernel", streams[index % 4], kernel)
        observers[0].end()
        assert len(observers[1].completes) == 1000
        observers[1].end()
        total += len(observers[0].completes)
    assert total == 10000
    for stream in streams:
        api.destroy_stream(stream)
