# SPDX-License-Identifier: BSD-3-Clause
"""Worker processes answer requests. A worker that crashes or hangs is reported, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import _pythons
import _served
import pytest
from _platform import HAS_FORK, IS_LINUX
from _processes import GUARD, is_running, wait_until_gone

from openreg_testing.forks import Answer, ForkServer, Lost, SpawnServer, attend, send_part
from openreg_testing.workers import forks

pytestmark = pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")


@pytest.fixture(scope="module")
def server():
    server = ForkServer(_served.serve)
    yield server
    server.close()


@pytest.fixture
def worker(server):
    worker = server.worker()
    yield worker
    worker.end()


@pytest.fixture
def spawned(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    server = SpawnServer("_served:serve")
    yield server.worker()
    server.close()


def python(*arguments):
    return _pythons.run(*arguments, env=_pythons.environment(), folder=Path.cwd(), timeout=GUARD)


def children():
    """The children of this process, zombies included."""
    folders = Path("/proc/self/task").glob("*/children")
    return {int(child) for folder in folders for child in folder.read_text().split()}


def descriptors():
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208  (no descriptor of its own stays open)


def test_a_worker_answers_one_request_after_the_other(worker):
    assert [worker.ask(("echo", value)) for value in range(3)] == [Answer(0), Answer(1), Answer(2)]


def test_a_large_request_and_answer_arrive_whole(worker):
    value = os.urandom(5 << 20)
    assert worker.ask(("echo", value)) == Answer(value)


def test_parts_arrive_before_the_answer(worker):
    seen = []
    assert worker.ask(("parts", 3), on_part=seen.append) == Answer(3)
    assert seen == [0, 1, 2]


def test_a_worker_has_the_environment_that_it_was_given(server, monkeypatch):
    monkeypatch.setenv("OPENREG_TESTING_LATER", "set after the fork of the server")
    worker = server.worker({"OPENREG_TESTING_OF_THE_WORKER": "1"})
    assert worker.ask(("environment", "OPENREG_TESTING_OF_THE_WORKER")) == Answer("1")
    assert worker.ask(("environment", "OPENREG_TESTING_LATER")) == Answer(None)
    worker.end()


def test_what_a_worker_writes_goes_to_a_file_of_its_own(worker, capfd):
    worker.ask(("say", "hello"))
    assert worker.written() == "hello\n"
    assert worker.written() == ""
    assert capfd.readouterr() == ("", "")


def test_workers_are_not_this_process_nor_each_other(server):
    workers = [server.worker() for _ in range(2)]
    processes = {worker.ask(("process",)).value[0] for worker in workers}
    assert len(processes | {os.getpid()}) == 3
    for worker in workers:
        worker.end()


@pytest.mark.parametrize("limit", [None, GUARD])
def test_a_crash_is_reported_with_its_signal_and_stack(worker, limit):
    lost = worker.ask(("crash",), limit)
    assert lost.reason == "crashed with SIGSEGV"
    assert lost.output.startswith("before the crash\nFatal Python error: Segmentation fault")
    assert "_served.py" in lost.output
    assert "in crash" in lost.output


def test_a_crash_is_reported_with_its_stack_after_the_crash_of_a_child(worker):
    """The worker writes 100 lines and the report of a child's crash before it crashes itself."""
    lost = worker.ask(("crash_after_a_crash",))
    lines = lost.output.splitlines()
    assert lines[10].startswith("Fatal Python error: Segmentation fault")
    assert lines[7:10] == ["line 99", "Fatal Python error: of a child", "before the crash"]
    assert "in crash" in lost.output


def test_the_output_of_a_crash_is_that_of_its_request(worker):
    worker.ask(("say", "an earlier request"))
    assert "an earlier request" not in worker.ask(("crash",)).output


@pytest.mark.parametrize(("way", "output"), [("leave", "before the exit"), ("leave_at_once", "")])
def test_an_exit_is_reported_with_its_status_and_output(worker, way, output):
    assert worker.ask((way, 3)) == Lost("ended with status 3", output)


def test_a_hang_is_ended_and_reported_with_its_stack(worker):
    lost = worker.ask(("hang",), limit=0.2)
    assert lost.reason == "took longer than 0.2 s"
    assert "in hang" in lost.output


def test_a_hang_that_ignores_signals_is_ended(worker, monkeypatch):
    monkeypatch.setattr(forks, "PATIENCE", 0.2)  # of a wait that lasts all of it
    assert worker.ask(("hang_for_good",), limit=0.2).reason == "took longer than 0.2 s"


def test_an_exception_is_reported_with_its_traceback(worker):
    lost = worker.ask(("fail",))
    assert lost.reason == "raised LookupError: no such thing"
    assert "Traceback" in lost.output


def test_an_answer_that_cannot_be_pickled_is_reported(worker):
    assert "cannot pickle '_thread.lock' object" in worker.ask(("unpicklable",)).reason


def test_a_request_that_cannot_be_pickled_leaves_the_worker_alone(worker):
    with pytest.raises(TypeError, match="cannot pickle"):
        worker.ask(("echo", threading.Lock()))
    assert worker.ask(("echo", 1)) == Answer(1)


def test_a_lost_worker_is_not_asked_again(worker):
    worker.ask(("leave", 1))
    with pytest.raises(RuntimeError, match="has ended; call worker"):
        worker.ask(("echo", 1))


def test_the_server_outlives_a_crash(server, worker):
    worker.ask(("crash",))
    another = server.worker()
    assert another.ask(("echo", 1)) == Answer(1)
    another.end()


def test_an_exception_in_this_process_ends_the_worker(worker):
    process = worker.ask(("process",)).value[0]

    def interrupt(part):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worker.ask(("parts", 3), on_part=interrupt)
    assert not is_running(process)


@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
def test_what_a_worker_started_ends_with_it(worker):
    child = worker.ask(("start_child",)).value
    assert is_running(child)
    worker.end()
    wait_until_gone(child)


@pytest.mark.skipif(not IS_LINUX, reason="needs a handle of the process")
def test_a_crash_is_noticed_though_a_child_holds_the_connection(worker):
    assert worker.ask(("fork_child_and_crash",), GUARD).reason == "crashed with SIGSEGV"


@pytest.mark.endurance
@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
def test_hundreds_of_workers_leave_no_process_and_no_descriptor():
    processes, handles = children(), descriptors()
    server = ForkServer(_served.serve)
    requests = [("echo", 1), ("crash",), ("leave", 3), ("fail",)]
    threads = [threading.Thread(target=run_workers, args=(server, requests, 75)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [server.worker() for _ in range(20)]
    left = [worker.ask(("process",)).value[0] for worker in kept]
    server.close()
    for worker in kept:
        worker.end()
    assert not any(map(is_running, left))
    assert children() <= processes
    assert descriptors() <= handles


def run_workers(server, requests, count):
    for number in range(count):
        worker = server.worker()
        worker.ask(requests[number % len(requests)], GUARD)
        worker.end()


def test_a_closed_server_forks_no_more():
    server = ForkServer(_served.serve)
    server.close()
    server.close()
    with pytest.raises(RuntimeError, match="this server is closed"):
        server.worker()


@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
def test_a_killed_server_is_reported_and_takes_its_workers_along():
    server = ForkServer(_served.serve)
    worker = server.worker()
    process, parent = worker.ask(("process",)).value
    os.kill(parent, signal.SIGKILL)
    wait_until_gone(process)
    assert isinstance(worker.ask(("echo", 1), GUARD), Lost)
    with pytest.raises(RuntimeError, match="the server process was killed"):
        server.worker()
    server.close()


KILLED = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import _served
from openreg_testing.forks import ForkServer
server = ForkServer(_served.serve)
print(*server.worker().ask(("process",)).value, flush=True)
server.worker().ask(("hang",))
"""


@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_server_and_workers_end_with_the_process_that_asks(number):
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        processes = [int(word) for word in client.stdout.readline().split()]
        client.send_signal(number)
    assert len(processes) == 2
    for process in processes:
        wait_until_gone(process)


INTERRUPTED = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
import _served
from openreg_testing.forks import ForkServer
server = ForkServer(_served.serve)
worker = server.worker()
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have programs in the background ignore it
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    worker.ask(("hang",))
except KeyboardInterrupt:
    server.close()
    print("interrupted")
"""


def test_an_interrupt_ends_the_wait_for_an_answer():
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GUARD)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


COMPUTING = """
import os, sys
sys.path.insert(0, sys.argv[1])
import _served, torch
from openreg_testing.forks import Answer, ForkServer, can_fork
assert can_fork() is None, can_fork()
server = ForkServer(_served.serve)
assert torch.ones(2, device="openreg").sum().item() == 2  # this process uses what it forbids to those that fork
_served.backward()
for _ in range(3):
    worker = server.worker()
    assert worker.ask(("is_initialized",)) == Answer(False)
    assert worker.ask(("add_on_device",)) == Answer([2.0] * 3)
    assert worker.ask(("backward",)) == Answer(600.0)
    worker.end()
server.close()
"""


def test_workers_compute_though_the_client_has_used_device_and_threads():
    done = python("-c", COMPUTING, str(Path(__file__).parent))
    assert (done.stderr, done.returncode) == ("", 0)


LATE_IMPORTS = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
import _served, torch
from openreg_testing.forks import Answer, ForkServer
torch.__path__.append(sys.argv[2])
pathlib.Path(sys.argv[2], "of_a_test.py").write_text("print('loud')")
pathlib.Path(sys.argv[2], "spoils.py").write_text("import torch; torch.ones(1, device='openreg')")
server = ForkServer(_served.serve)

def imported_before(module):
    worker = server.worker()
    answer = worker.ask(("imports", module))
    worker.end()
    return answer.value

assert [imported_before("torch.of_a_test") for _ in range(3)] == [False, True, True]
assert [imported_before("tabnanny") for _ in range(2)] == [False, False]
assert [imported_before("torch.spoils") for _ in range(2)] == [False, False]
worker = server.worker()
assert worker.ask(("add_on_device",)) == Answer([2.0] * 3)
server.close()
"""


def test_what_torch_imports_late_is_imported_once_unless_that_prevents_forks(tmp_path):
    done = python("-c", LATE_IMPORTS, str(Path(__file__).parent), str(tmp_path))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("torch.ones(2)", "None"),
        ("import numpy; numpy.ones((500, 500)) @ numpy.ones((500, 500))", "None"),
        ("torch.openreg.is_available(), torch.openreg.device_count()", "None"),
        ("torch.ones(2, device='openreg')", "the device openreg is in use"),
        ("torch.ones(2, requires_grad=True).sum().backward()", "a backward pass has started autograd's threads"),
        ("torch.set_num_threads(2); torch.ones(2_000_000).add_(1)", "an operator has started OpenMP's threads"),
    ],
)
def test_can_fork_says_what_a_fork_would_lose(code, reason):
    code = f"import torch\n{code}\nfrom openreg_testing.forks import can_fork\nprint(can_fork())"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(reason)


def test_a_started_worker_answers(spawned):
    seen = []
    assert spawned.ask(("parts", 2), on_part=seen.append) == Answer(2)
    assert spawned.ask(("echo", "x")) == Answer("x")
    assert seen == [0, 1]


def test_a_crash_of_a_started_worker_is_reported(spawned):
    lost = spawned.ask(("crash",))
    assert lost.reason == "crashed with SIGSEGV"
    assert "in crash" in lost.output


def test_a_hang_of_a_started_worker_is_reported(spawned):
    assert spawned.ask(("hang",), limit=0.2).reason == "took longer than 0.2 s"


def test_a_program_that_cannot_start_is_lost_with_what_it_said():
    server = SpawnServer("openreg_testing_has_no_such_module:serve")
    lost = server.worker().ask(("echo", 1), GUARD)
    assert lost.reason == "ended with status 1"
    assert "No module named 'openreg_testing_has_no_such_module'" in lost.output
    server.close()


@pytest.mark.parametrize("arguments", [{}, {"serve": "a:b", "command": ["c"]}, {"serve": "no_function"}])
def test_a_spawn_server_names_the_form_that_it_takes(arguments):
    with pytest.raises(ValueError, match='give either serve="module:function" or a command'):
        SpawnServer(**arguments)


def test_attend_is_for_started_workers():
    with pytest.raises(RuntimeError, match="in a process that a SpawnServer started"):
        attend(_served.serve)


def test_send_part_is_for_workers():
    with pytest.raises(RuntimeError, match="this process is not a worker"):
        send_part(1)
