# SPDX-License-Identifier: BSD-3-Clause
"""Generated code launches kernels through the C table whose address it gets (native/generated.c)."""

import ctypes
import struct
from ctypes import byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_ubyte, c_uint, c_void_p

import pytest
import torch
from driver._platform import MODULE_SUFFIX
from driver.device_header import Access, Error
from driver.observer import Observer

import openreg_runtime

pytestmark = pytest.mark.usefixtures("clean_device")

MAX_ARGUMENTS = 1 << 20  # OPENREG_MAX_LAUNCH_ARGUMENTS
MAX_ALIGNMENT = 4096  # OPENREG_MAX_LAUNCH_ALIGNMENT


class Table(ctypes.Structure):
    """orLaunchEntry."""

    _fields_ = (
        ("size", c_size_t),
        ("version", c_uint),
        ("kernel_view_offset", ctypes.c_ssize_t),
        ("launch", c_void_p),
        ("operands_wanted", ctypes.CFUNCTYPE(c_int)),
        ("last_error_message", ctypes.CFUNCTYPE(c_char_p)),
    )


class Place(ctypes.Structure):
    """What a kernel has seen of its arguments."""

    _fields_ = (("address", c_size_t), ("first", c_ubyte), ("last", c_ubyte))


PROTOTYPES = {
    "launch_add": (c_void_p, c_void_p, c_void_p, c_size_t, c_int32, c_void_p),
    "launch_look": (c_void_p, c_char_p, c_size_t, c_size_t),
    "launch_on_device": (c_void_p, c_int, c_void_p),
    "launch_fail": (c_void_p, c_void_p),
    "launch_halve": (c_void_p, c_void_p),
    "launch_wrong": (c_void_p, c_char_p, c_void_p),
}


class Generated:
    """The compiled functions, with the table in front; they raise the text of a failure."""

    def __init__(self, path):
        self.entry = openreg_runtime.launch_entry()
        self.table = Table.from_address(self.entry.address)
        self.library = ctypes.PyDLL(str(path))
        for name, arguments in PROTOTYPES.items():
            getattr(self.library, name).argtypes = arguments

    def __getattr__(self, name):
        def call(*arguments):
            code = getattr(self.library, name)(self.entry.address, *arguments)
            if code:
                raise RuntimeError(f"{Error(code).name}: {self.table.last_error_message().decode()}")

        return call


@pytest.fixture(scope="session")
def generated(native):
    return Generated(f"{native('generated')}{MODULE_SUFFIX}")


@pytest.fixture
def numbers(driver):
    """Memory of the device for 1000 numbers, which are 0."""
    storage = torch.UntypedStorage(4000, device="openreg")
    driver.call("orMemset", storage.data_ptr(), 0, 4000)
    return storage


@pytest.fixture
def read(driver, numbers):
    """The set of the numbers."""
    return lambda: {number for (number,) in struct.iter_unpack("i", driver.download(numbers.data_ptr(), 4000))}


def test_the_table_is_of_the_version_that_was_asked_for(driver):
    entry = openreg_runtime.launch_entry()
    assert entry == openreg_runtime.launch_entry(1) == openreg_runtime.LaunchEntry(1, entry.address)
    table = Table.from_address(entry.address)
    assert (table.size, table.version) == (ctypes.sizeof(Table), 1)
    assert table.kernel_view_offset == driver.kernel_view(0)


@pytest.mark.parametrize("version", [0, 2, 2**32 - 1])
def test_another_version_is_refused_with_both_numbers_and_the_way_out(version):
    text = rf"orGetLaunchEntry: version {version} .*version 1\b.*; compile.*install"
    with pytest.raises(NotImplementedError, match=text):
        openreg_runtime.launch_entry(version)


def test_in_c_a_refusal_leaves_no_table(generated):
    runtime = ctypes.PyDLL(openreg_runtime._C.__file__)  # finds what the module is linked with
    entry = c_void_p(1)
    assert runtime.orGetLaunchEntry(2, byref(entry)) == Error.orErrorNotSupported
    assert entry.value is None
    assert generated.table.last_error_message().startswith(b"orGetLaunchEntry: version 2")
    assert runtime.orGetLaunchEntry(1, None) == Error.orErrorInvalidValue
    assert generated.table.last_error_message().startswith(b"orGetLaunchEntry: argument `entry` is null; ")
    assert runtime.orGetLaunchEntry(1, byref(entry)) == Error.orSuccess
    assert entry.value == generated.entry.address


def test_a_launch_returns_at_once_and_owns_a_copy_of_the_arguments(generated, numbers, read, gate):
    """The C function overwrites its block, and returns, before the kernel runs."""
    calls = c_int32()
    gate.close()
    for number in (1, 10, 100):
        generated.launch_add(None, numbers.data_ptr(), 1000, number, byref(calls))
    assert calls.value == 0
    gate.open()
    torch.accelerator.synchronize()
    assert (read(), calls.value) == ({111}, 3)


def test_it_is_ordered_with_other_work_of_its_stream(generated, numbers, gate):
    calls, stream = c_int32(), torch.openreg.Stream()
    gate.close(stream)
    generated.launch_add(stream.native_handle, numbers.data_ptr(), 1000, 5, byref(calls))
    torch.openreg.default_stream().synchronize()
    assert calls.value == 0
    assert not stream.query()
    gate.open()
    stream.synchronize()
    assert calls.value == 1


def test_without_a_stream_it_is_the_current_one_of_the_device(generated):
    calls, stream = c_int64(), torch.openreg.Stream(1)
    before = torch.openreg.stream_stats(stream).launches
    with torch.openreg.stream(stream):
        generated.launch_on_device(1, byref(calls))
        generated.launch_on_device(-1, byref(calls))  # it makes the device current, too
    generated.launch_on_device(1, byref(calls))
    generated.launch_on_device(0, byref(calls))
    torch.accelerator.synchronize(0)
    torch.accelerator.synchronize(1)
    assert calls.value == 4
    assert torch.openreg.stream_stats(stream).launches - before == 2


@pytest.mark.parametrize("alignment", [0, 1, 8, 64, MAX_ALIGNMENT])
@pytest.mark.parametrize("size", [18, 1000, 100_000, MAX_ARGUMENTS])
def test_the_copy_has_the_alignment_that_it_needs(generated, size, alignment):
    for _ in range(3):
        place = Place()
        block = struct.pack("P", ctypes.addressof(place)) + struct.pack("N", size) + b"\1" + bytes(size - 18) + b"\2"
        generated.launch_look(block, size, alignment)
        torch.accelerator.synchronize()
        assert place.address % (alignment or 16) == 0
        assert (place.first, place.last) == (1, 2)


def test_small_numbers_are_taken_as_the_launching_thread_takes_them(generated):
    results = []
    try:
        for flush in (False, True):
            assert torch.set_flush_denormal(flush)
            result = c_float(-1)
            generated.launch_halve(byref(result))
            torch.accelerator.synchronize()
            results.append(result.value)
    finally:
        torch.set_flush_denormal(False)
    assert results[0] > 0
    assert results[1] == 0


def test_a_kernel_that_fails_is_named_with_its_reason(generated):
    generated.launch_fail(None)
    with pytest.raises(torch.AcceleratorError, match=r"kernel 'fails' failed: no arguments"):
        torch.accelerator.synchronize()
    with pytest.raises(RuntimeError, match=r"orErrorLaunchFailure: orLaunchKernel: .*'fails'.*reset_device\(\)"):
        generated.launch_fail(None)


def test_a_kernel_may_throw(native, generated):
    """What is generated is C++ as a rule, and what it calls may throw."""
    library = ctypes.PyDLL(f"{native('launches')}{MODULE_SUFFIX}")
    assert library.launch_a_throw(c_void_p(generated.entry.address)) == Error.orSuccess
    with pytest.raises(torch.AcceleratorError, match="kernel 'throws' failed: on purpose"):
        torch.accelerator.synchronize()


def test_operands_are_reported_to_observers_that_need_them(generated, numbers, driver):
    calls = c_int32()
    assert generated.table.operands_wanted() == 0
    observer = Observer(driver)
    assert generated.table.operands_wanted() == 1
    generated.launch_add(None, numbers.data_ptr(), 1000, 1, byref(calls))
    observer.end()
    (task,) = [task for task in observer.submits if task.name == b"add"]
    assert task.operands == [(numbers.data_ptr(), 4000, Access.orAccessReadWrite)]


def test_a_graph_owns_the_arguments(generated, numbers, read):
    calls, graph = c_int32(), torch.accelerator.Graph()
    with torch.Stream("openreg"), graph:
        generated.launch_add(None, numbers.data_ptr(), 1000, 7, byref(calls))
        generated.launch_add(None, numbers.data_ptr(), 500, 0, byref(calls))
    assert calls.value == 0
    for _ in range(3):
        graph.replay()
    torch.accelerator.synchronize()
    assert (read(), calls.value) == ({21}, 6)


def test_an_invalidated_capture_refuses_it(generated, numbers):
    stream, calls = torch.openreg.Stream(), c_int32()
    graph = torch.accelerator.Graph()
    with torch.openreg.stream(stream):
        graph.capture_begin()
        with pytest.raises(torch.AcceleratorError):
            stream.synchronize()
        with pytest.raises(RuntimeError, match=r"orErrorStreamCaptureInvalidated: orLaunchKernel\w*: .*invalidated"):
            generated.launch_add(None, numbers.data_ptr(), 1000, 7, byref(calls))
        with pytest.raises(torch.AcceleratorError):
            graph.capture_end()


WRONG = {
    "null": "orErrorInvalidValue: .*`launch` is null; .*orLaunch",
    "size": r"orErrorInvalidValue: .*`size` is 8, .*\d+ bytes; .*sizeof\(orLaunch\)",
    "name": "orErrorInvalidValue: .*`name` is null; ",
    "function": "orErrorInvalidValue: .*`function` of kernel 'wrong' is null; ",
    "arguments": "orErrorInvalidValue: .*`arguments` of kernel 'wrong' is null, .*`arguments_size` is 8; .*0",
    "arguments_size": "orErrorInvalidValue: .*'wrong' .*1048577 bytes.* 1048576 .*; .*address",
    "negative size": "orErrorInvalidValue: .*'wrong' .*18446744073709551615 bytes",
    "alignment": "orErrorInvalidValue: .*'wrong' is 24; .*power of two.*4096",
    "large alignment": "orErrorInvalidValue: .*'wrong' is 8192; .*power of two.*4096",
    "device": "orErrorInvalidDevice: .*`device` of kernel 'wrong' is 99, .*2 devices; .*-1",
    "negative device": "orErrorInvalidDevice: .*`device` of kernel 'wrong' is -2",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_launch_is_refused_with_the_way_out(generated, what):
    with pytest.raises(RuntimeError, match=WRONG[what]) as caught:
        generated.launch_wrong(what.encode(), None)
    assert "orLaunchEntry.launch: " in str(caught.value)


def test_wrong_operands_are_refused(generated):
    with pytest.raises(RuntimeError, match=r"orLaunchKernelWithOperands: operand 0 .*8 bytes.*null"):
        generated.launch_wrong(b"operands", None)


def test_a_destroyed_stream_is_refused(generated, driver):
    stream = driver.stream()
    driver.destroy_stream(stream)
    with pytest.raises(RuntimeError, match=r"orErrorInvalidResourceHandle: orLaunchKernel: stream .*destroyed"):
        generated.launch_fail(stream)


IN_A_PROCESS_OF_ITS_OWN = """
import ctypes, os, sys, threading, time, torch, openreg_runtime
entry = openreg_runtime.launch_entry()
library = ctypes.PyDLL({path!r})
calls = ctypes.c_int64()
def launch(count, stream=None):
    arguments = (entry.address, stream, ctypes.addressof(calls))
    return library.launch_many(*map(ctypes.c_void_p, arguments), count)
"""

CASES = {
    "launch blocking and a kernel that needs Python": (
        {"OPENREG_LAUNCH_BLOCKING": "1"},
        """
        ran = []
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        kernel = function(lambda *_: ran.append(1) or 0)
        library.launch_function.argtypes = ctypes.c_void_p, function
        assert library.launch_function(entry.address, kernel) == 0
        assert ran == [1]
        """,
    ),
    "a seed and kernels that need Python": (
        {"OPENREG_SCHEDULE_SEED": "3"},
        """
        ran = []
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        kernel = function(lambda *_: ran.append(1) or 0)
        library.launch_function.argtypes = ctypes.c_void_p, function
        for _ in range(1000):
            assert library.launch_function(entry.address, kernel) == 0
        assert 0 < len(ran) < 1000
        torch.accelerator.synchronize()
        assert len(ran) == 1000
        """,
    ),
    "a thread that still launches when the process ends": (
        {},
        """
        torch.openreg._sleep(3_600_000_000_000)
        threading.Thread(target=launch, args=(100_000,), daemon=True).start()
        while torch.openreg.stream_stats(torch.openreg.current_stream()).submitted < 16384:
            pass
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_waits_without_the_gil_with(succeed, native, name):
    settings, body = CASES[name]
    lines = (line.removeprefix("        ") for line in body.strip("\n").splitlines())
    preamble = IN_A_PROCESS_OF_ITS_OWN.format(path=f"{native('generated')}{MODULE_SUFFIX}")
    succeed(preamble + "\n".join(lines), env=settings, finalize=True)


def test_a_forked_child_is_refused(succeed, native):
    body = """
child = os.fork()
if child == 0:
    try:
        openreg_runtime.launch_entry()
    except RuntimeError as error:
        assert "fork" in str(error)
    else:
        os._exit(1)
    os._exit(0 if launch(1) == 11 else 2)
assert os.waitpid(child, 0)[1] == 0
assert launch(1) == 0
torch.accelerator.synchronize()
assert calls.value == 1
"""
    succeed(IN_A_PROCESS_OF_ITS_OWN.format(path=f"{native('generated')}{MODULE_SUFFIX}") + body)
