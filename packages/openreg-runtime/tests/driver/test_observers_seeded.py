# SPDX-License-Identifier: BSD-3-Clause
"""With a seed, each task has a simulated time of its own, and an observer may determine its duration."""

from __future__ import annotations

import ast

import pytest

from .conftest import RunScript

SETUP = """
from driver.observer import Observer
MS = 1_000_000
"""


def seeded(run_script: RunScript, body: str, seed: int = 3) -> object:
    done = run_script(SETUP + body, env={"OPENREG_SCHEDULE_SEED": str(seed)})
    assert done.code == 0, done.errors
    return ast.literal_eval(done.output)


def test_an_event_has_the_time_at_which_the_work_before_it_ended(run_script: RunScript) -> None:
    """Not that of the task before: an observer gives each kernel a time of its own."""
    body = """
observer = Observer(api, duration=lambda task: int(task.name) * MS)
events = [api.event(timed=True) for _ in range(4)]
api.record(events[0], None)
for index, name in enumerate((b"5", b"7", b"11")):
    api.launch(None, lambda: None, name=name)
    api.record(events[index + 1], None)
api.synchronize()
times = [api.elapsed(first, second) for first, second in zip(events, events[1:])]
kernels = [observer.complete_of(task) for task in observer.submits if task.name]
print([times, [(task.end - task.begin) / MS for task in kernels]])
observer.end()
"""
    assert seeded(run_script, body) == [[5.0, 7.0, 11.0], [5.0, 7.0, 11.0]]


def test_times_of_the_seed_are_a_tasks_own(run_script: RunScript) -> None:
    body = """
observer = Observer(api)
events = [api.event(timed=True) for _ in range(4)]
api.record(events[0], None)
for index in range(3):
    api.launch(None, lambda: None)
    api.record(events[index + 1], None)
api.synchronize()
times = [api.elapsed(first, second) for first, second in zip(events, events[1:])]
kernels = [observer.complete_of(task) for task in observer.submits if task.name]
print([[round(time, 4) for time in times], [round((task.end - task.begin) / MS, 4) for task in kernels]])
observer.end()
"""
    told, own = seeded(run_script, body)
    assert told == pytest.approx(own, abs=2e-4)
    assert all(time > 0 for time in own)


def test_a_delay_ends_at_its_own_time(run_script: RunScript) -> None:
    """Although another stream's task takes longer."""
    body = """
observer = Observer(api, duration=lambda task: 50 * MS)
start, end, pausing = api.event(timed=True), api.event(timed=True), api.stream()
api.record(start, pausing)
api.delay(pausing, 0.010)
api.record(end, pausing)
api.launch(None, lambda: None)
api.synchronize()
print(api.elapsed(start, end))
observer.end()
"""
    assert seeded(run_script, body) == 10.0


def test_the_first_answer_counts(run_script: RunScript) -> None:
    body = """
silent = Observer(api)
first = Observer(api, duration=lambda task: 2 * MS if task.name == b"known" else None)
second = Observer(api, duration=lambda task: 9 * MS, renumber=lambda number: number + 100)
asked = []
api.launch(None, lambda: None, name=b"known")
api.launch(None, lambda: None, name=b"other")
api.synchronize()
print([(task.end - task.begin) // MS for task in silent.completes])
for observer in (silent, first, second):
    observer.end()
"""
    assert seeded(run_script, body) == [2, 9]


def test_the_task_is_described_with_the_observers_own_id(run_script: RunScript) -> None:
    body = """
asked = []
def answer(task):
    asked.append((task.correlation, task.kind, task.name, task.bytes, task.device))
observer = Observer(api, duration=answer, renumber=lambda number: number + 100)
address = api.malloc(4096)
api.launch(None, lambda: None, name=b"kernel")
api.call("orMemsetAsync", address, 0, 512, None)
api.delay(None, 1)  # its time is known
api.synchronize()
print(asked)
observer.end()
api.free(address)
"""
    assert seeded(run_script, body) == [(101, 0, b"kernel", 0, 0), (102, 3, None, 512, 0)]


@pytest.mark.parametrize("seed", range(3))
def test_observing_does_not_change_the_order(run_script: RunScript, seed: int) -> None:
    body = """
order, streams = [], [api.stream() for _ in range(4)]
{observe}
for step in range(10):
    for index, stream in enumerate(streams):
        api.launch(stream, lambda text=f"{{index}}{{step}}": order.append(text))
api.synchronize()
print(order)
"""
    observed = seeded(run_script, body.format(observe="observer = Observer(api)"), seed)
    assert observed == seeded(run_script, body.format(observe=""), seed)


def test_unsubscribing_runs_deferred_tasks(run_script: RunScript) -> None:
    body = """
observer, ran = Observer(api), []
for index in range(3):
    api.launch(None, lambda i=index: ran.append(i))
observer.end()
print([len(ran), len(observer.completes)])
"""
    assert seeded(run_script, body) == [3, 3]


def test_a_task_of_absurd_length_ends(run_script: RunScript) -> None:
    body = """
observer = Observer(api, duration=lambda task: 2**64 - 1)
for _ in range(3):
    api.launch(None, lambda: None)
    api.delay(None, 1e9)
api.synchronize()
print(all(task.begin <= task.end for task in observer.completes))
observer.end()
"""
    assert seeded(run_script, body) is True
