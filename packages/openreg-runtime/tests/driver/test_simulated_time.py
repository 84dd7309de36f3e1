# SPDX-License-Identifier: BSD-3-Clause
"""With an observer as time source, tasks begin and end at the simulated times that were computed by hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from .conftest import MIB, RunScript
from .device_api import Api, DriverError, Error
from .device_header import SUBSCRIBE_TIME, TaskKind
from .observer import Observer

MS = 1_000_000
IN, OUT = 1, 2
NAMES = ("submit", "complete", "capture", "duration", "engine", "host")


class Chip:
    """A chip whose kernels are named after what they take: b"3" is 3 ms of engine 0, b"in 4" 4 ms of engine 1."""

    engines = {"in": IN, "out": OUT}  # noqa: RUF012

    def __init__(self, api: Api) -> None:
        self.api = api
        self.host = 0
        self.observer = Observer(
            api, NAMES, flags=SUBSCRIBE_TIME, duration=self._duration, engine=self._engine, host=lambda _: self.host
        )
        self.labels: list[str] = []
        self.names: list[bytes] = []  # the device keeps their addresses until they have run

    def launch(self, stream: int | None, label: str, cost: str, **more: object) -> None:
        """Work that costs what the name says, to be found under a label."""
        self.labels.append(label)
        self.names.append(cost.encode())
        self.api.launch(stream, lambda: None, name=self.names[-1], **more)

    def _duration(self, task: SimpleNamespace) -> int | None:
        if task.name is None:
            return None
        return int(task.name.split()[-1]) * MS

    def _engine(self, task: SimpleNamespace) -> int:
        return self.engines.get(task.name.decode().split()[0], 0) if task.name else 0

    def times(self) -> dict[str, tuple[float, float]]:
        """Of each label (begin, end), in ms since the first entry could begin."""
        kernels = [task for task in self.observer.submits if task.kind == TaskKind.orTaskKernel]
        done = [self.observer.complete_of(task) for task in kernels]
        begin = min(task.begin for task in done)
        return {
            label: ((task.begin - begin) / MS, (task.end - begin) / MS)
            for label, task in zip(self.labels, done, strict=True)
        }


@pytest.fixture
def chip(api: Api) -> Iterator[Chip]:
    chip = Chip(api)
    yield chip
    if api.c.orUnsubscribe(chip.observer.handle) != Error.orErrorInvalidResourceHandle:
        assert len(chip.observer.completes) == len(chip.observer.submits)


@pytest.fixture
def streams(api: Api) -> Iterator[list[int]]:
    streams = [api.stream() for _ in range(3)]
    yield streams
    for stream in streams:
        api.destroy_stream(stream)


def wait_for(api: Api, waiting: int, stream: int) -> None:
    event = api.event()
    api.record(event, stream)
    api.wait_event(waiting, event)
    api.destroy_event(event)


def test_kernels_of_a_stream_follow_one_another(api: Api, chip: Chip, streams: list[int]) -> None:
    for label, cost in (("a", "3"), ("b", "2"), ("c", "4")):
        chip.launch(streams[0], label, cost)
    api.synchronize()
    assert chip.times() == {"a": (0, 3), "b": (3, 5), "c": (5, 9)}


def test_streams_share_an_engine_in_the_order_of_their_launches(api: Api, chip: Chip, streams: list[int]) -> None:
    for label, stream, cost in (("a", 0, "3"), ("b", 1, "3"), ("c", 0, "2")):
        chip.launch(streams[stream], label, cost)
    api.synchronize()
    assert chip.times() == {"a": (0, 3), "b": (3, 6), "c": (6, 8)}


def test_engines_work_at_the_same_time(api: Api, chip: Chip, streams: list[int]) -> None:
    for label, stream, cost in (("in", 0, "in 4"), ("kernel", 1, "3"), ("out", 2, "out 5"), ("again", 1, "in 1")):
        chip.launch(streams[stream], label, cost)
    api.synchronize()
    assert chip.times() == {"in": (0, 4), "kernel": (0, 3), "out": (0, 5), "again": (4, 5)}


def test_a_stream_waits_for_what_an_event_marks(api: Api, chip: Chip, streams: list[int]) -> None:
    copies, work, _ = streams
    chip.launch(copies, "first", "in 2")
    wait_for(api, work, copies)
    chip.launch(copies, "second", "in 5")
    chip.launch(work, "kernel", "3")
    api.synchronize()
    assert chip.times() == {"first": (0, 2), "second": (2, 7), "kernel": (2, 5)}


def test_double_buffering(api: Api, chip: Chip, streams: list[int]) -> None:
    copies, work, _ = streams
    for number in "123":
        chip.launch(copies, f"load {number}", "in 2")
        wait_for(api, work, copies)
        chip.launch(work, f"compute {number}", "3")
    api.synchronize()
    assert chip.times() == {
        "load 1": (0, 2),
        "compute 1": (2, 5),
        "load 2": (2, 4),
        "compute 2": (5, 8),
        "load 3": (4, 6),
        "compute 3": (8, 11),
    }


def test_a_slow_host_leaves_gaps(api: Api, chip: Chip, streams: list[int]) -> None:
    chip.host = 2 * MS
    for label in "abc":
        chip.launch(streams[0], label, "1")
    api.synchronize()
    assert chip.times() == {"a": (0, 1), "b": (2, 3), "c": (4, 5)}


def test_the_hosts_clock_goes_to_the_end_of_what_it_waits_for(api: Api, chip: Chip, streams: list[int]) -> None:
    chip.host = 1 * MS
    event = api.event()
    chip.launch(streams[0], "a", "5")
    api.record(event, streams[0])
    chip.launch(streams[0], "b", "5")
    api.synchronize_event(event)  # at 5: the first launch ended at 0
    chip.launch(streams[1], "copy", "out 1")
    api.synchronize()
    chip.launch(streams[1], "after all", "1")
    api.synchronize()
    assert chip.times() == {"a": (0, 5), "b": (5, 10), "copy": (6, 7), "after all": (11, 12)}
    api.destroy_event(event)


def test_a_wait_for_what_has_run_already_and_not_ended_by_the_hosts_clock(
    api: Api, chip: Chip, streams: list[int]
) -> None:
    """The host waits for the second stream's work, which begins with the first one's; so that has run, up to 100."""
    first, second, third = streams
    chip.launch(first, "long", "100")
    chip.launch(second, "short", "in 1")
    api.synchronize_stream(second)
    wait_for(api, third, first)
    chip.launch(third, "after", "in 1")
    api.synchronize()
    assert chip.times()["after"] == (100, 101)


def test_events_have_the_chips_time(api: Api, chip: Chip, streams: list[int]) -> None:
    events = [api.event(timed=True) for _ in range(3)]
    api.record(events[0], streams[0])
    chip.launch(streams[0], "a", "7")
    api.record(events[1], streams[0])
    api.delay(streams[0], 0.002)
    chip.launch(streams[0], "b", "11")
    api.record(events[2], streams[0])
    api.synchronize()
    assert [api.elapsed(*pair) for pair in itertools.pairwise(events)] == [7, 13]
    for event in events:
        api.destroy_event(event)


def test_delays_need_no_engine(api: Api, chip: Chip, streams: list[int]) -> None:
    chip.launch(streams[0], "begin", "1")
    api.delay(streams[0], 0.010)
    chip.launch(streams[1], "beside", "2")
    chip.launch(streams[0], "after", "1")
    api.synchronize()
    assert chip.times() == {"begin": (0, 1), "beside": (1, 3), "after": (11, 12)}


def test_a_higher_priority_goes_first_where_both_could_begin(api: Api, chip: Chip, streams: list[int]) -> None:
    urgent = api.stream(priority=-1)
    chip.host = 1 * MS
    chip.launch(streams[0], "running", "5")
    chip.launch(streams[1], "waiting", "1")
    chip.launch(urgent, "urgent", "1")
    api.synchronize()
    assert chip.times() == {"running": (0, 5), "urgent": (5, 6), "waiting": (6, 7)}
    api.destroy_stream(urgent)


def test_a_query_is_answered_by_the_hosts_clock(api: Api, chip: Chip, streams: list[int]) -> None:
    chip.host = 1 * MS
    event = api.event()
    chip.launch(streams[0], "a", "3")
    api.record(event, streams[0])
    assert not api.event_ready(event)
    assert not api.stream_ready(streams[0])
    chip.launch(streams[1], "b", "in 1")  # 1
    chip.launch(streams[1], "c", "in 1")  # 2
    assert not api.event_ready(event)
    chip.launch(streams[1], "d", "in 1")  # 3
    assert api.event_ready(event)
    assert api.stream_ready(streams[0])
    api.destroy_event(event)


def test_the_clock_goes_on_for_a_program_that_polls(api: Api, chip: Chip, streams: list[int]) -> None:
    events = [api.event(), api.event()]
    for event, stream in zip(events, streams, strict=False):
        chip.launch(stream, str(event), "50")
        api.record(event, stream)
    polls = 0
    while not all(api.event_ready(event) for event in events):
        polls += 1
        assert polls < 1000
    assert polls > 60
    for event in events:
        api.destroy_event(event)


def test_work_that_has_begun_runs_without_a_wait(api: Api, chip: Chip, streams: list[int]) -> None:
    """So that a program which never waits does not fill the queues, and frees what its kernels hold."""
    chip.host = 2 * MS
    before = api.stats().launches
    for number in range(600):
        chip.launch(streams[0], str(number), "1")
    assert api.stats().launches - before >= 300
    api.synchronize()
    assert chip.times()["599"] == (2 * 599, 2 * 599 + 1)


def test_tasks_that_could_still_be_overtaken_are_deferred(api: Api, chip: Chip, streams: list[int]) -> None:
    before = api.stats().launches
    for number in range(600):
        chip.launch(streams[0], str(number), "1")
    assert api.stats().launches - before <= 1
    urgent = api.stream(priority=-1)
    chip.launch(urgent, "urgent", "1")
    api.synchronize()
    times = chip.times()
    assert times["urgent"] == (1, 2)
    assert times["599"] == (600, 601)
    api.destroy_stream(urgent)


def test_a_graph_runs_in_simulated_time_and_reports_what_it_repeats(api: Api, chip: Chip, streams: list[int]) -> None:
    first, second, _ = streams
    api.begin_capture(first)
    chip.launch(first, "", "2")
    wait_for(api, second, first)
    chip.launch(second, "", "in 4")
    chip.launch(first, "", "3")
    wait_for(api, first, second)
    chip.launch(first, "", "1")
    graph = api.end_capture(first)
    chip.labels = [f"{number} of {launch}" for launch in (1, 2) for number in (1, 2, 3, 4)]
    for _ in range(2):
        api.launch_graph(graph, first)
    api.synchronize()
    assert chip.times() == {
        "1 of 1": (0, 2),
        "2 of 1": (2, 6),
        "3 of 1": (2, 5),
        "4 of 1": (6, 7),
        "1 of 2": (7, 9),
        "2 of 2": (9, 13),
        "3 of 2": (9, 12),
        "4 of 2": (13, 14),
    }
    nodes = [task.node for task in chip.observer.captures]
    assert len(set(nodes)) == 4
    assert 0 not in nodes
    replayed = [task.node for task in chip.observer.submits if task.kind == TaskKind.orTaskKernel]
    assert replayed == nodes * 2
    assert [task.name for task in chip.observer.captures] == [b"2", b"in 4", b"3", b"1"]
    api.destroy_graph(graph)


def test_a_semaphore_takes_what_the_chip_says_or_until_it_is_signaled(api: Api, streams: list[int]) -> None:
    semaphore = api.semaphore()
    for known, expected in ((8 * MS, 8), (None, 20)):
        observer = Observer(
            api,
            NAMES,
            flags=SUBSCRIBE_TIME,
            duration=lambda task, known=known: known if task.kind == TaskKind.orTaskSemaphoreWait else 0,
            host=lambda _: 10 * MS,
        )
        value = api.semaphore_value(semaphore) + 1
        api.wait_semaphore(streams[0], semaphore, value)
        api.launch(streams[0], lambda: None)
        api.signal(semaphore, value)
        api.synchronize()
        wait, kernel = (observer.complete_of(task) for task in observer.submits)
        assert (wait.end - wait.begin) / MS == (expected if known else expected - 10)
        assert kernel.begin == max(wait.end, wait.begin + 10 * MS)
        observer.end()
    api.destroy_semaphore(semaphore)


def test_results_are_the_same(api: Api, chip: Chip) -> None:
    address = api.malloc(4 * MIB)
    data = bytes(range(256)) * (16 * 1024)
    api.upload(address, data)
    assert api.download(address, len(data)) == data
    api.call("orMemset", address, 7, 1024)
    assert api.download(address, 1024) == b"\x07" * 1024
    api.free(address)


def test_what_a_failed_device_skips_takes_no_time(api: Api, chip: Chip, streams: list[int]) -> None:
    chip.launch(streams[0], "fails", "3")
    api.set_faults("launch:1")
    chip.launch(streams[0], "hit", "3")
    chip.launch(streams[0], "skipped", "3")
    with pytest.raises(DriverError):
        api.synchronize()
    api.set_faults(None)
    api.reset()
    times = chip.times()
    assert times["skipped"][0] == times["skipped"][1] == times["hit"][1]


def test_time_is_real_again_afterwards(api: Api, streams: list[int]) -> None:
    chip = Chip(api)
    chip.launch(streams[0], "a", "100000")
    chip.observer.end()  # runs the deferred tasks
    assert chip.times() == {"a": (0, 100_000)}
    observer = Observer(api)
    begin, end = api.event(timed=True), api.event(timed=True)
    api.record(begin, streams[0])
    api.delay(streams[0], 0.005)
    api.record(end, streams[0])
    api.synchronize()
    assert api.elapsed(begin, end) > 5  # modeled, it would be 5
    # Both engines work again.
    source, target = api.malloc(8 * MIB), api.malloc(8 * MIB)
    api.copy_async(target, source, 8 * MIB, streams[0])
    api.synchronize()
    (copy,) = (observer.complete_of(task) for task in observer.submits if task.kind == TaskKind.orTaskCopy)
    assert copy.engine == 1
    observer.end()
    api.free(source)
    api.free(target)


def test_a_second_one_is_refused(api: Api, chip: Chip) -> None:
    with pytest.raises(DriverError, match="another subscription keeps the time; end it first") as error:
        Observer(api, NAMES, flags=SUBSCRIBE_TIME)
    assert error.value.code == Error.orErrorIllegalState


@pytest.mark.parametrize(("flags", "code"), [(SUBSCRIBE_TIME, "orErrorIllegalState"), (6, "orErrorInvalidValue")])
def test_one_that_is_refused_runs_nothing(api: Api, chip: Chip, streams: list[int], flags: int, code: str) -> None:
    ran: list[bool] = []
    api.launch(streams[0], lambda: ran.append(True), name=b"1")
    with pytest.raises(DriverError) as error:
        Observer(api, NAMES, flags=flags)
    assert (error.value.code, ran) == (Error[code], [])
    chip.observer.end()
    assert ran == [True]


def test_what_is_queued_before_runs_in_real_time(api: Api, streams: list[int]) -> None:
    done = []
    api.launch(streams[0], lambda: done.append(True))
    observer = Observer(api, NAMES, flags=SUBSCRIBE_TIME)
    assert done == [True]
    assert observer.submits == []
    observer.end()


def test_with_a_seed_it_is_refused(run_script: RunScript) -> None:
    done = run_script(
        """
from driver.device_header import SUBSCRIBE_TIME
from driver.observer import Observer
try:
    Observer(api, ("duration",), flags=SUBSCRIBE_TIME)
except Exception as error:
    print(error)
""",
        env={"OPENREG_SCHEDULE_SEED": "3"},
    )
    assert "OPENREG_SCHEDULE_SEED is set" in done.output
    assert "unset it" in done.output


def test_a_process_may_end_with_deferred_tasks(run_script: RunScript) -> None:
    """With callbacks of the driver's own: Python's may be gone by then."""
    done = run_script(
        """
import ctypes
from driver.device_header import SUBSCRIBE_TIME, SUBSCRIBER_VERSION, Subscriber
handle = ctypes.c_void_p()
table = Subscriber(ctypes.sizeof(Subscriber), SUBSCRIBER_VERSION, SUBSCRIBE_TIME)
table.engine = ctypes.cast(api.c.orOperandsWanted, ctypes.c_void_p).value
api.call("orSubscribe", ctypes.byref(table), None, ctypes.byref(handle))
for _ in range(100):
    api.launch(None, lambda: None)
print("ends")
"""
    )
    assert (done.code, done.output.strip()) == (0, "ends")
