# SPDX-License-Identifier: BSD-3-Clause
"""A thread that finds a stream's queue full releases the GIL, so that other Python threads can run, one of which may be
what the queue waits for.

The calls are made through ctypes.PyDLL or by functions that do not give the GIL away before. The gate in front is
opened by a thread that has to run Python code for it, after the queue is full: if the GIL is held, the gate stays
closed, and fails after its time.
"""

import ctypes
import os
import subprocess
import sys
import threading

import pytest
import torch
from driver._platform import MODULE_SUFFIX
from driver.conftest import PATIENCE

import openreg_runtime

CAPACITY = 16384  # entries of one stream, from openreg.h
MORE = 100

pytestmark = pytest.mark.usefixtures("clean_device")


@pytest.fixture(scope="session")
def generated(native):
    """What stands for a compiler's output; its functions are called with the GIL held."""
    return ctypes.PyDLL(f"{native('generated')}{MODULE_SUFFIX}")


@pytest.fixture(scope="session")
def launches(native):
    return ctypes.PyDLL(f"{native('launches')}{MODULE_SUFFIX}")


@pytest.fixture
def opened_when_full(gate):
    """Closes the gate on a stream; a thread opens it as soon as the stream is full, in Python code."""
    threads, ended = [], threading.Event()  # ended: also if the test fails before the stream is full

    def close(stream):
        gate.close(stream)
        before = torch.openreg.stream_stats(stream).submitted

        def open_when_full():
            while torch.openreg.stream_stats(stream).submitted - before < CAPACITY - 1:  # the gate has a place
                if ended.wait(0.001):
                    break
            gate.open()

        threads.append(threading.Thread(target=open_when_full))
        threads[-1].start()

    yield close
    ended.set()
    for thread in threads:
        thread.join()


@pytest.fixture(params=["generated code", "C++"])
def launch(request):
    """Launches on a stream, in one call with the GIL held."""
    library = request.getfixturevalue("generated" if request.param == "generated code" else "launches")

    def by_generated_code(stream, calls):
        entry = openreg_runtime.launch_entry()
        arguments = (entry.address, stream.native_handle, ctypes.addressof(calls))
        assert library.launch_many(*map(ctypes.c_void_p, arguments), CAPACITY + MORE) == 0

    def in_cpp(stream, calls):
        with torch.openreg.stream(stream):
            library.launch_in_cpp(ctypes.c_int64(0), ctypes.c_void_p(ctypes.addressof(calls)), CAPACITY + MORE)

    return by_generated_code if request.param == "generated code" else in_cpp


def test_a_launch_gives_the_gil_away(launch, opened_when_full):
    stream, calls = torch.openreg.Stream(), ctypes.c_int64()
    opened_when_full(stream)
    launch(stream, calls)
    stream.synchronize()
    assert calls.value == CAPACITY + MORE


@pytest.fixture
def call_when_full(generated, gate):
    """Fills a stream, then calls a function while no other thread can take the GIL by force.

    A thread that gets it opens the gate.
    """
    called, calls = threading.Event(), ctypes.c_int64()

    def open_when_called():
        called.wait()
        gate.open()

    thread = threading.Thread(target=open_when_called)
    thread.start()
    interval = sys.getswitchinterval()

    def call(stream, function):
        stream.synchronize()
        gate.close(stream)
        arguments = (openreg_runtime.launch_entry().address, stream.native_handle, ctypes.addressof(calls))
        assert generated.launch_many(*map(ctypes.c_void_p, arguments), CAPACITY - 1) == 0
        sys.setswitchinterval(1000)
        called.set()
        function()
        stream.synchronize()
        assert calls.value == CAPACITY - 1

    yield call
    sys.setswitchinterval(interval)
    called.set()  # the test may have failed before
    thread.join()


# Each prepares a call.


def record(stream, _gate):
    event = torch.Event("openreg", enable_timing=True)
    return lambda: event.record(stream)


def record_without_timing(stream, _gate):
    event = torch.Event("openreg")
    return lambda: event.record(stream)


def wait_for_an_event(stream, gate):
    event, other = torch.Event("openreg"), torch.openreg.Stream()
    gate.close(other)
    event.record(other)
    return lambda: stream.wait_event(event)


def pause(_stream, _gate):
    return lambda: torch.openreg._sleep(1)


def resize_a_storage(_stream, _gate):
    storage = torch.UntypedStorage(1000, device="openreg")
    return lambda: storage.resize_(2000)


def release_a_storage(_stream, _gate):
    storages = [torch.UntypedStorage(1000, device="openreg")]
    return storages.clear


def replay_a_graph(_stream, _gate):
    graph = torch.accelerator.Graph()
    with torch.Stream("openreg"), graph:
        torch.openreg._sleep(1)
    return graph.replay


def mark_a_range_of_a_profile(_stream, _gate):
    profile = torch.autograd.profiler.profile(use_device="openreg", use_kineto=False)
    profile.__enter__()

    def mark():
        with torch._C._profiler._RecordFunctionFast("range"):
            pass
        profile.__exit__(None, None, None)

    return mark


@pytest.mark.parametrize(
    "prepare",
    [
        record,
        record_without_timing,
        wait_for_an_event,
        pause,
        resize_a_storage,
        release_a_storage,
        replay_a_graph,
        mark_a_range_of_a_profile,
    ],
)
def test_so_does_what_else_is_enqueued(call_when_full, gate, prepare):
    stream = torch.openreg.Stream()
    with torch.openreg.stream(stream):
        call_when_full(stream, prepare(stream, gate))


@pytest.mark.parametrize("name", ["resize_a_storage", "release_a_storage"])
def test_so_does_a_fill_with_poison(name):
    """The fill of memory that is allocated or released is a task, too."""
    test = f"{__file__}::{test_so_does_what_else_is_enqueued.__name__}[{name}]"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    others = ("OPENREG_", "TORCH_", "PYTEST_")  # settings of this session
    env = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    env["OPENREG_POISON"] = "1"
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=5 * PATIENCE)
    assert done.returncode == 0, done.stdout
