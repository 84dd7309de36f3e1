# SPDX-License-Identifier: BSD-3-Clause
"""A seed selects one order of tasks also with semaphores, and no program hangs because of it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ._platform import HAS_FORK
from .conftest import PATIENCE, SETTINGS, RunScript
from .peer import PREAMBLE

needs_fork = pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")

# A schedule that waits longer for a thread than a busy machine stops one. Otherwise the order could be another one.
PATIENT = {"OPENREG_SCHEDULE_TIMEOUT": str(PATIENCE)}

# What each child process of a seed runs: four streams, each with a chain of "collectives". A progress thread per stream
# waits for the work before the collective, takes up to 50 ms, and signals. `order` is what the device did.
COLLECTIVES = """
import os, random
def order_of(seed, busy):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.environ["OPENREG_SCHEDULE_SEED"] = str(seed)
        sleeper = random.Random(os.getpid())
        order, ready, threads = [], [], []
        streams = [api.stream(-(index % 2)) for index in range(4)]
        semaphores = [api.semaphore() for _ in streams]
        marks = [[api.event() for _ in range(3)] for _ in streams]
        def progress(index):
            api.set_progress(1)
            for step in range(3):
                ready[index][step].wait()
                {before}
                time.sleep(sleeper.random() * 0.05)
                api.signal(semaphores[index], step + 1)
        for index in range(4):
            ready.append([threading.Event() for _ in range(3)])
            threads.append(threading.Thread(target=progress, args=(index,)))
            threads[-1].start()
        for step in range(3):
            for index, stream in enumerate(streams):
                for part in "abc":
                    api.launch(stream, lambda text=f"{{index}}{{part}}{{step}}": order.append(text))
                api.record(marks[index][step], stream)
                ready[index][step].set()
                api.wait_semaphore(stream, semaphores[index], step + 1)
            if busy:
                time.sleep(sleeper.random() * 0.02)
        {wait}
        for thread in threads:
            thread.join()
        os.write(writer, " ".join(order).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    assert len(text.split()) == 36, text
    return text
"""
SYNCHRONIZE = "api.synchronize()"
POLL = "while not all(api.stream_ready(stream) for stream in streams): pass"
AFTER_THE_WORK = "api.synchronize_event(marks[index][step])"


def orders(run_script: RunScript, runs: str, *, before: str = AFTER_THE_WORK, wait: str = SYNCHRONIZE) -> list[int]:
    """How many different orders each item of the expression `runs` gave."""
    body = COLLECTIVES.format(before=before, wait=wait) + f"\nprint({runs})"
    done = run_script(body, env=PATIENT, timeout=5 * PATIENCE)
    assert done.code == 0, done.errors
    return json.loads(done.output)


@needs_fork
@pytest.mark.parametrize("runs", [40, pytest.param(100, marks=pytest.mark.endurance)])
def test_all_runs_of_a_seed_have_one_order_however_late_the_signals(run_script: RunScript, runs: int) -> None:
    assert orders(run_script, f"[len({{order_of(7, index % 2) for index in range({runs})}})]") == [1]


@needs_fork
def test_signals_that_come_early_change_nothing(run_script: RunScript) -> None:
    """They do not wait for the work before the collective: some come before the stream is there, or before the wait."""
    assert orders(run_script, "[len({order_of(5, index % 2) for index in range(30)})]", before="pass") == [1]


@needs_fork
def test_seeds_differ(run_script: RunScript) -> None:
    (different,) = orders(run_script, "[len({order_of(seed, 0) for seed in range(6)})]")
    assert different > 3


@needs_fork
def test_a_program_that_polls_ends(run_script: RunScript) -> None:
    assert orders(run_script, "[len({order_of(3, 0)})]", wait=POLL) == [1]


def test_the_first_wait_is_first_whoever_is_signaled(run_script: RunScript) -> None:
    """Both streams stand before their signals, and the last wait is signaled first."""
    body = """
    order, streams = [], [api.stream() for _ in range(3)]
    semaphores = [api.semaphore() for _ in streams]
    for index in (2, 0, 1):
        api.wait_semaphore(streams[index], semaphores[index], 1)
    for index in range(3):
        api.launch(streams[index], lambda i=index: order.append(i))
    def wait(index):
        api.synchronize_stream(streams[index])
    threads = [threading.Thread(target=wait, args=(index,)) for index in range(3)]
    [thread.start() for thread in threads]
    time.sleep(0.2)  # likely all three stand there
    for index in (1, 0, 2):
        api.signal(semaphores[index], 1)
        time.sleep(0.05)  # in which a stream would go on out of its turn
    [thread.join() for thread in threads]
    print(*order)
    """
    for seed in range(3):
        done = run_script(body, env=PATIENT | {"OPENREG_SCHEDULE_SEED": str(seed)})
        assert done.output.split() == ["2", "0", "1"], done.errors


def test_a_signal_counts_when_nothing_else_can_run(run_script: RunScript) -> None:
    body = """
    order, first, second, semaphore = [], api.stream(), api.stream(), api.semaphore()
    api.signal(semaphore, 9)
    api.wait_semaphore(first, semaphore, 1)
    api.launch(first, lambda: order.append("behind"))
    for index in range(5):
        api.launch(second, lambda i=index: order.append(i))
        api.delay(second, 10)
    api.synchronize()
    api.wait_semaphore(first, semaphore, 1)  # reached: costs nothing
    submitted = api.stream_stats(first).submitted
    api.wait_semaphore(first, semaphore, 2)  # signaled, and not seen by the device yet
    print(*order, api.semaphore_value(semaphore), submitted, api.stream_stats(first).submitted)
    """
    for seed in range(3):
        done = run_script(body, env={"OPENREG_SCHEDULE_SEED": str(seed)})
        assert done.output.split() == ["0", "1", "2", "3", "4", "behind", "9", "2", "3"], done.errors


def test_a_failure_counts_when_its_wait_has_its_turn(run_script: RunScript) -> None:
    body = """
    order, first, second, semaphore = [], api.stream(), api.stream(), api.semaphore()
    api.fail_semaphore(semaphore, Error.orErrorUnknown, b"gone")
    api.wait_semaphore(first, semaphore, 1)
    api.launch(first, lambda: order.append("never"))
    for index in range(5):
        api.launch(second, lambda i=index: order.append(i))
    code = api.c.orDeviceSynchronize()
    print(*order, Error(code).name, "gone" in api.message())
    api.reset()
    api.destroy_semaphore(semaphore)
    """
    done = run_script(body, env={"OPENREG_SCHEDULE_SEED": "1"})
    assert done.output.split() == ["0", "1", "2", "3", "4", "orErrorLaunchFailure", "True"], done.errors


PROGRESS = """
ran, event = [], api.event()
api.launch(None, lambda: ran.append(1))
api.record(event, None)
seen = []
def progress():
    api.set_progress(1)
    seen.append((api.event_ready(event), len(ran)))
    api.synchronize_event(event)
    seen.append(len(ran))
thread = threading.Thread(target=progress)
thread.start()
"""


def test_a_progress_thread_lets_nothing_run_while_others_may(run_script: RunScript) -> None:
    body = (
        PROGRESS
        + """
time.sleep(1.5)  # in which the progress thread would let the kernel run, after the default of the timeout at the latest
early = len(ran)
api.synchronize_stream(None)
thread.join()
print(early, seen)
"""
    )
    done = run_script(body, env=PATIENT | {"OPENREG_SCHEDULE_SEED": "1"})
    assert done.output.strip() == "0 [(False, 0), 1]", done.errors


def test_a_progress_thread_for_which_all_others_wait_lets_tasks_run(run_script: RunScript) -> None:
    done = run_script(PROGRESS + "\nthread.join()\nprint(ran)", env={"OPENREG_SCHEDULE_SEED": "1"})
    assert done.output.strip() == "[1]", done.errors


def test_a_signal_that_waits_for_a_later_one_is_not_waited_for_for_ever(run_script: RunScript) -> None:
    """The thread that signals the first wait begins after the second."""
    body = """
    first, second = api.stream(), api.stream()
    semaphores = [api.semaphore(), api.semaphore()]
    api.wait_semaphore(first, semaphores[0], 1)
    api.wait_semaphore(second, semaphores[1], 1)
    def other():
        api.synchronize_stream(second)
        api.signal(semaphores[0], 1)
    thread = threading.Thread(target=other)
    thread.start()
    threading.Timer(0.1, api.signal, (semaphores[1], 1)).start()
    api.synchronize_stream(first)
    thread.join()
    print("ok")
    """
    done = run_script(body, env={"OPENREG_SCHEDULE_SEED": "1"})
    assert done.output.split() == ["ok"], done.errors


# A rank: two groups of collectives on streams of their own. For each, a progress thread waits for the work before it,
# leaves a file for the other rank, waits for the other's, and signals. A rank's first wait is for group `first`.
RANK = """
first, rank, folder = int(os.environ["FIRST"]), os.environ["RANK"], os.environ["FOLDER"]
streams, semaphores = [api.stream(), api.stream()], [api.semaphore(), api.semaphore()]
STEPS = 4
marks = [[api.event() for _ in range(STEPS)] for _ in streams]
enqueued = [[threading.Event() for _ in range(STEPS)] for _ in streams]
order = []
def progress(group):
    api.set_progress(1)
    for step in range(STEPS):
        enqueued[group][step].wait()
        api.synchronize_event(marks[group][step])
        open(os.path.join(folder, f"{rank}-{group}-{step}"), "w").close()
        while not os.path.exists(os.path.join(folder, f"{1 - int(rank)}-{group}-{step}")):
            time.sleep(0.002)
        api.signal(semaphores[group], step + 1)
threads = [threading.Thread(target=progress, args=(group,)) for group in range(2)]
[thread.start() for thread in threads]
for step in range(STEPS):
    for group in (first, 1 - first):
        api.launch(streams[group], lambda text=f"{group}{step}": order.append(text))
        api.record(marks[group][step], streams[group])
        enqueued[group][step].set()
        api.wait_semaphore(streams[group], semaphores[group], step + 1)
api.synchronize_stream(streams[first])
api.synchronize_stream(streams[1 - first])
[thread.join() for thread in threads]
print(len(order))
"""


@pytest.mark.parametrize(("firsts", "seeds"), [((0, 1), (1, 2)), ((0, 0), (3, 4)), ((1, 0), (5, 5))])
def test_ranks_that_order_two_groups_differently_do_not_deadlock(
    library: Path, firsts: tuple[int, int], seeds: tuple[int, int]
) -> None:
    script = PREAMBLE.format(folder=str(Path(__file__).resolve().parents[1]), library=str(library)) + RANK
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", script],
                env={
                    **SETTINGS,
                    "OPENREG_SCHEDULE_SEED": str(seeds[rank]),
                    "FIRST": str(firsts[rank]),
                    "RANK": str(rank),
                    "FOLDER": folder,
                },
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            assert [rank.communicate(timeout=PATIENCE)[0].split() for rank in ranks] == [["8"], ["8"]]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()


def test_rank_threads_of_one_process_do_not_deadlock(run_script: RunScript) -> None:
    """A thread per device, each with two groups in an order of its own; a collective needs the work of both."""
    body = """
    done, lock = {}, threading.Lock()
    semaphores = {(rank, group): api.semaphore() for rank in range(2) for group in range(2)}
    def progress(event, rank, group, step):
        api.set_progress(1)
        api.synchronize_event(event)
        with lock:
            done[group, step] = done.get((group, step), 0) + 1
            complete = done[group, step] == 2
        if complete:
            for other in range(2):
                api.signal(semaphores[other, group], step + 1)
    def work(rank):
        api.set_device(rank)
        streams, threads = [api.stream(), api.stream()], []
        for step in range(3):
            for group in (rank, 1 - rank):
                event = api.event()
                api.launch(streams[group], lambda: None)
                api.record(event, streams[group])
                threads.append(threading.Thread(target=progress, args=(event, rank, group, step)))
                threads[-1].start()
                api.wait_semaphore(streams[group], semaphores[rank, group], step + 1)
        for group in (rank, 1 - rank):
            api.synchronize_stream(streams[group])
        [thread.join() for thread in threads]
    ranks = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    [thread.start() for thread in ranks]
    [thread.join() for thread in ranks]
    print(len(done))
    """
    for seed in range(3):
        done = run_script(body, env={"OPENREG_SCHEDULE_SEED": str(seed)})
        assert done.output.split() == ["6"], done.errors
