# SPDX-License-Identifier: BSD-3-Clause
"""A seed selects one valid order of tasks, which is the same in every run and differs between seeds."""

from __future__ import annotations

import pytest

from ._platform import HAS_FORK
from .conftest import PATIENCE, RunScript

# Two streams append letters; `order` is what the device did.
TWO_STREAMS = """
order = []
streams = [api.stream(), api.stream()]
for index in range(6):
    for name, stream in zip("ab", streams):
        api.launch(stream, lambda text=f"{name}{index}": order.append(text))
api.synchronize()
print(" ".join(order))
"""

# The consumer does not wait for the producer: a missing synchronization.
RACE = """
box = ["empty"]
producer, consumer = api.stream(), api.stream()
seen = []
api.launch(producer, lambda: box.__setitem__(0, "full"))
{sync}
api.launch(consumer, lambda: seen.append(box[0]))
api.synchronize()
print(seen[0])
"""


def seeded(run_script: RunScript, body: str, seed: int) -> str:
    done = run_script(body, env={"OPENREG_SCHEDULE_SEED": str(seed)})
    assert done.code == 0, done.errors
    return done.output


def test_a_seed_repeats_its_order_and_another_one_differs(run_script: RunScript) -> None:
    orders = {seed: seeded(run_script, TWO_STREAMS, seed) for seed in range(4)}
    assert len(set(orders.values())) > 1
    for seed, order in orders.items():
        assert seeded(run_script, TWO_STREAMS, seed) == order
        for name in "ab":
            own = [step for step in order.split() if step[0] == name]
            assert own == [f"{name}{index}" for index in range(6)]


@pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")
def test_200_seeds_show_a_missing_synchronization_and_repeat_it(run_script: RunScript) -> None:
    many = """
    import os
    def shows(seed):
        box, seen = ["empty"], []
        child = os.fork()
        if child == 0:
            os.environ["OPENREG_SCHEDULE_SEED"] = str(seed)
            producer, consumer = api.stream(), api.stream()
            api.launch(producer, lambda: box.__setitem__(0, "full"))
            api.launch(consumer, lambda: seen.append(box[0]))
            api.synchronize()
            os._exit(seen == ["empty"])
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    results = [shows(seed) for seed in range(200)]
    racy, safe = results.index(1), results.index(0)
    assert set(results) == {0, 1}, set(results)
    assert [shows(racy) for _ in range(10)] == [1] * 10
    assert [shows(safe) for _ in range(10)] == [0] * 10
    print(sum(results))
    """
    done = run_script(many, timeout=5 * PATIENCE)
    assert done.code == 0, done.errors
    assert 20 < int(done.output) < 180


@pytest.mark.parametrize("seed", range(5))
def test_synchronized_work_is_right_under_every_seed(run_script: RunScript, seed: int) -> None:
    sync = "event = api.event(); api.record(event, producer); api.wait_event(consumer, event)"
    assert seeded(run_script, RACE.format(sync=sync), seed).split() == ["full"]


def test_tasks_are_deferred_until_the_host_asks(run_script: RunScript) -> None:
    body = """
    ran = []
    for index in range(3):
        api.launch(None, lambda: ran.append(index))
    time.sleep(0.05)  # in which tasks that are not deferred would run
    counts = [len(ran)]
    for _ in range(4):
        api.stream_ready(None)  # a query lets one task run
        counts.append(len(ran))
    print(*counts)
    """
    assert seeded(run_script, body, 1).split() == ["0", "1", "2", "3", "3"]


def test_a_long_backlog_runs_without_being_asked(run_script: RunScript) -> None:
    body = """
    ran = []
    for _ in range(2000):
        api.launch(None, lambda: ran.append(0))
    print(len(ran))
    api.synchronize()
    print(len(ran))
    """
    held, everything = map(int, seeded(run_script, body, 1).split())
    assert 1700 < held < 2000
    assert everything == 2000


def test_polling_ends(run_script: RunScript) -> None:
    body = """
    first, second = api.stream(), api.stream()
    event = api.event()
    api.delay(first, 3600)
    api.record(event, first)
    api.wait_event(second, event)
    api.launch(second, lambda: None)
    while not api.stream_ready(second):
        pass
    print("done")
    """
    assert seeded(run_script, body, 3).split() == ["done"]


def test_delays_take_virtual_time(run_script: RunScript) -> None:
    body = """
    start, end = api.event(timed=True), api.event(timed=True)
    api.record(start, None)
    api.delay(None, 3600)
    api.record(end, None)
    api.synchronize()
    print(api.elapsed(start, end))
    """
    outputs = {seeded(run_script, body, 5) for _ in range(2)}
    assert len(outputs) == 1
    assert float(outputs.pop()) == pytest.approx(3600e3)


def test_the_shorter_delay_ends_first(run_script: RunScript) -> None:
    body = """
    order = []
    long, short = api.stream(), api.stream()
    api.delay(long, 2)
    api.delay(short, 1)
    api.launch(long, lambda: order.append("long"))
    api.launch(short, lambda: order.append("short"))
    api.synchronize()
    print(*order)
    """
    assert {seeded(run_script, body, seed) for seed in range(5)} == {"short long\n"}


def test_priorities_are_honored(run_script: RunScript) -> None:
    body = """
    order = []
    low, high = api.stream(0), api.stream(-3)
    for name, stream in (("low", low), ("high", high)) * 3:
        api.launch(stream, lambda text=name: order.append(text))
    api.synchronize()
    print(*order)
    """
    for seed in range(5):
        assert seeded(run_script, body, seed).split() == ["high"] * 3 + ["low"] * 3


def test_a_process_ends_with_deferred_tasks(run_script: RunScript) -> None:
    assert seeded(run_script, "api.launch(None, lambda: None); print('end')", 1).split() == ["end"]


def test_threads_that_wait_at_once_all_return(run_script: RunScript) -> None:
    body = """
    done = []
    def work():
        stream = api.stream()
        for _ in range(50):
            for _ in range(10):
                api.launch(stream, lambda: None)
            api.synchronize_stream(stream)
        done.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(len(done))
    """
    assert seeded(run_script, body, 7).split() == ["4"]


@pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")
def test_a_seed_repeats_a_program_with_everything_in_it(run_script: RunScript) -> None:
    """Kernels, large copies (which another engine runs without a seed), delays, events, two devices, a graph."""
    done = run_script(
        """
        MIB = 1 << 20
        def order_of(seed):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.environ["OPENREG_SCHEDULE_SEED"] = str(seed)
                order, event = [], api.event()
                streams = []
                for device in (0, 1):
                    api.set_device(device)
                    streams += [api.stream(), api.stream(-1), api.stream()]
                source, target = api.malloc(2 * MIB), api.malloc(2 * MIB)
                api.begin_capture(streams[3])
                api.launch(streams[3], lambda: order.append("graph"))
                graph = api.end_capture(streams[3])
                for step in range(12):
                    for index, stream in enumerate(streams):
                        api.launch(stream, lambda text=f"{index}.{step}": order.append(text))
                        if (index + step) % 3 == 0:
                            api.delay(stream, 1e-5 * (index + 1))
                        if (index + step) % 4 == 0:
                            api.copy_async(target, source, 2 * MIB, stream)
                    api.record(event, streams[step % 6])
                    api.wait_event(streams[(step + 1) % 6], event)
                    api.launch_graph(graph, streams[3 + step % 3])
                    api.event_ready(event)
                for device in (0, 1):
                    api.set_device(device)
                    api.synchronize()
                os.write(writer, " ".join(order).encode())
                os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as answer:
                text = answer.read()
            os.waitpid(child, 0)
            assert len(text.split()) == 12 * 7, text
            return text
        orders = {seed: {order_of(seed) for _ in range(20)} for seed in range(5)}
        print([len(different) for different in orders.values()], len(set.union(*orders.values())))
        """,
        timeout=5 * PATIENCE,
    )
    assert done.output.strip() == "[1, 1, 1, 1, 1] 5", done.errors
