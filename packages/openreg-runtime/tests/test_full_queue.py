# SPDX-License-Identifier: BSD-3-Clause
"""A thread that holds the GIL and finds a stream's queue full: other threads of Python go on, one of which may be what
the queue waits for.

The calls are made through ctypes.PyDLL or by functions that do not give the GIL away before. The gate in front is opened
by a thread that has to run Python code for it, after the queue is full: if the GIL is held, nobody opens the gate, which
fails after its time.
"""

import ctypes
import sys
import threading

import pytest
import torch

import openreg_runtime
from driver._platform import MODULE_SUFFIX

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
    threads = []

    def close(stream):
        gate.close(stream)
        before = torch.openreg.stream_stats(stream).submitted

        def open_when_full():
            while torch.openreg.stream_stats(stream).submitted - before < CAPACITY - 1:  # the gate has a place
                pass
            gate.open()

        threads.append(threading.Thread(target=open_when_full))
        threads[-1].start()

    yield close
    for thread in threads:
        thread.join()


def launched_by_generated_code(request, stream, calls):
    entry = openreg_runtime.launch_entry()
    function = request.getfixturevalue("generated").launch_many
    arguments = (entry.address, stream.native_handle, ctypes.addressof(calls))
    assert function(*map(ctypes.c_void_p, arguments), CAPACITY + MORE) == 0


def launched_in_cpp(request, stream, calls):
    with torch.openreg.stream(stream):
        function = request.getfixturevalue("launches").launch_in_cpp
        function(ctypes.c_int64(0), ctypes.c_void_p(ctypes.addressof(calls)), CAPACITY + MORE)


@pytest.mark.parametrize("launch", [launched_by_generated_code, launched_in_cpp])
def test_a_launch_gives_the_gil_away(request, opened_when_full, launch):
    stream, calls = torch.openreg.Stream(), ctypes.c_int64()
    opened_when_full(stream)
    launch(request, stream, calls)
    stream.synchronize()
    assert calls.value == CAPACITY + MORE


@pytest.fixture
def full(gate, generated):
    """A stream with no place left; what is called with it runs while no other thread can take the GIL by force."""
    stream, calls = torch.openreg.Stream(), ctypes.c_int64()
    gate.close(stream)
    entry = openreg_runtime.launch_entry()
    arguments = (entry.address, stream.native_handle, ctypes.addressof(calls))
    assert generated.launch_many(*map(ctypes.c_void_p, arguments), CAPACITY - 1) == 0
    called = threading.Lock()
    called.acquire()

    def open_when_called():
        with called:
            gate.open()

    thread = threading.Thread(target=open_when_called)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)

    def call(function):
        called.release()
        function()

    yield stream, call
    sys.setswitchinterval(interval)
    thread.join()
    stream.synchronize()
    assert calls.value == CAPACITY - 1


# What a function has to prepare before the call.


def record(stream):
    event = torch.Event("openreg", enable_timing=True)
    return lambda: event.record(stream)


def record_without_timing(stream):
    event = torch.Event("openreg")
    return lambda: event.record(stream)


def wait_for_an_event(stream):
    event, other = torch.Event("openreg"), torch.openreg.Stream()
    with torch.openreg.stream(other):
        torch.openreg._sleep(1_000_000_000)
    event.record(other)
    return lambda: stream.wait_event(event)


def pause(_stream):
    return lambda: torch.openreg._sleep(1)


def resize_a_storage(_stream):
    storage = torch.UntypedStorage(1000, device="openreg")
    return lambda: storage.resize_(2000)


def replay_a_graph(_stream):
    graph = torch.accelerator.Graph()
    with torch.Stream("openreg"), graph:
        torch.openreg._sleep(1)
    return graph.replay


@pytest.mark.parametrize(
    "prepare", [record, record_without_timing, wait_for_an_event, pause, resize_a_storage, replay_a_graph]
)
def test_so_does_what_else_is_enqueued(full, prepare):
    stream, call = full
    with torch.openreg.stream(stream):
        call(prepare(stream))
