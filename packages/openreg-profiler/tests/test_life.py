# SPDX-License-Identifier: BSD-3-Clause
"""Profiles may begin and end at any moment, also by an exception or not at all, without loss, hang or crash."""

import gc
import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from _platform import HAS_FORK
from profiles import BOTH, check, profiled
from torch.profiler import profile

from openreg_profiler import _warnings, trace

pytestmark = pytest.mark.every_subset
INCOMPLETE = "UserWarning: torch.profiler on openreg: the profile is not complete"


@pytest.fixture
def x():
    x = torch.ones(4, device="openreg")
    torch.openreg.synchronize()
    return x


def test_two_profiles_in_turn_have_each_its_own(x, tmp_path):
    for operator in ("add", "mul"):
        with profiled(tmp_path) as found:
            getattr(x, operator)(2)
        check(found[0])
        assert found[0].names == [f"aten::{operator}"]


def test_a_trace_is_freed_in_code_without_built_ins(x):
    """As by the garbage collector, which runs at any time: the code that makes a named tuple has no built-ins."""
    profiler = profile(activities=list(BOTH))
    with profiler:
        x.add(1)
    held = {"free": gc.collect, "__builtins__": {}}
    del profiler
    eval("free()", held)  # a failure is unraisable, which pytest makes one of the test


def test_work_that_was_launched_before_the_profile_is_not_in_it(x, gate, tmp_path):
    gate.close()
    x.add(1)
    with profiled(tmp_path) as found:
        x.mul(2)
        gate.open()
    assert found[0].names == ["aten::mul"]


def test_an_exception_inside_ends_the_profile_with_what_it_has(x, tmp_path):
    profiler = profile(activities=list(BOTH))

    def work():
        with profiler:
            x.add(1)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        work()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    assert '"aten::add"' in (tmp_path / "trace.json").read_text()
    with profiled(tmp_path) as found:
        x.mul(2)
    assert found[0].names == ["aten::mul"]


def test_a_profile_that_begins_before_the_other_has_ended_is_noticed(python):
    result = python("""
from torch.profiler import ProfilerActivity, profile
both = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
x = torch.ones(4, device="openreg")
first, second = profile(activities=both), profile(activities=both)
first.start()
x.add(1)
second.start()
x.mul(2)
second.stop()
print([event.name for event in second.events() if event.device_type.name == "OPENREG"])
with profile(activities=both) as third:
    x.exp()
print([event.name for event in third.events() if event.device_type.name == "OPENREG"])
""")
    assert result.stdout == "['aten::mul']\n['aten::exp']\n", result.stderr
    assert result.stderr.count(f"{INCOMPLETE}: another profile begins") == 1


def test_a_profile_that_is_started_twice_says_so(python):
    result = python("""
from torch.profiler import ProfilerActivity, profile
x = torch.ones(4, device="openreg")
profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
profiler.start()
profiler.start()
x.mul(2)
profiler.stop()
print([event.name for event in profiler.events() if event.device_type.name == "OPENREG"])
""")
    assert result.stdout == "['aten::mul']\n", result.stderr
    assert result.stderr.count(f"{INCOMPLETE}: another profile begins") == 1


def test_a_profile_that_another_thread_replaces_is_noticed(python):
    result = python("""
import os, threading
from torch.profiler import ProfilerActivity, profile
both = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
x = torch.ones(4, device="openreg")
first = profile(activities=both)
first.start()
x.add(1)
def other():
    with profile(activities=both) as second:
        x.mul(2)
    print([event.name for event in second.events() if event.device_type.name == "OPENREG"], flush=True)
thread = threading.Thread(target=other)
thread.start()
thread.join()
os._exit(0)  # PyTorch crashes where the first is stopped now, on the CPU alone, too
""")
    assert result.stdout == "['aten::mul']\n", result.stderr
    assert result.stderr.count(f"{INCOMPLETE}: another profile begins") == 1


def test_a_package_whose_name_begins_with_torch_is_no_part_of_torch():
    """A warning names its line, as that of any program."""
    file = str(Path(torch.__file__).parent) + "vision/io.py"
    names = {"warn": _warnings.warn_of_incomplete_profile}
    with pytest.warns(UserWarning, match="the profile is not complete: it is a test") as caught:
        exec(compile("warn('it is a test')", file, "exec"), names)
    assert caught[0].filename == file


def test_a_trace_without_references_is_no_replaced_profile(x):
    for _ in range(3):
        with profile(activities=list(BOTH)):
            x.add(1)
    profiler = profile(activities=list(BOTH))
    profiler.start()
    profiler.stop()
    del profiler  # warnings are errors here


# The kernel runs in Python until it sees that the main thread is in the function that ends the profile, which so leaves
# it the GIL. PyTorch synchronizes before that, but another thread may launch in between: here the synchronization is
# left out.
KERNEL_IN_PYTHON = """
import ctypes, pathlib, sys, threading
import openreg_runtime
import torch.autograd.profiler
from torch.profiler import ProfilerActivity, profile

(path,) = pathlib.Path(openreg_runtime.__file__).parent.joinpath("lib").glob("*openreg.*")
Function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)

class Kernel(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("function", Function), ("state", ctypes.c_void_p), ("release", ctypes.c_void_p)
    ]

@Function
def count(state, message, size):
    began.set()
    while True:
        frame = sys._current_frames()[threading.main_thread().ident]
        if frame.f_code is stop.__code__ and frame.f_lineno > stop.__code__.co_firstlineno:
            return 0

disable_profiler = torch.autograd.profiler._disable_profiler

def stop():
    return disable_profiler()

torch.autograd.profiler._disable_profiler = stop
began = threading.Event()
torch.ones(4, device="openreg")
profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
profiler.start()
assert ctypes.CDLL(str(path)).orLaunchKernel(None, ctypes.byref(Kernel(b"count", count, None, None))) == 0
began.wait()
profiler.profiler.use_device = None
profiler.stop()
torch.openreg.synchronize()
print("stopped")
"""


def test_a_profile_that_ends_while_a_kernel_in_python_runs_leaves_it_the_gil(python):
    result = python(KERNEL_IN_PYTHON)
    assert result.stdout == "stopped\n", result.stderr


def test_a_profile_that_is_open_when_the_process_ends_does_no_harm(python):
    result = python("""
from torch.profiler import ProfilerActivity, profile
profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
x = torch.ones(4, device="openreg")
profiler.start()
for _ in range(100):
    x.add_(1)
torch.openreg._sleep(50_000_000)
x.add_(1)
""")
    assert result.returncode == 0, result.stderr
    assert (
        result.stderr.count("UserWarning: torch.profiler on openreg: the profile is not complete: the process ends")
        == 1
    )


@pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")
def test_a_fork_leaves_the_parents_profile_as_it_is(python):
    result = python("""
import os
from torch.profiler import ProfilerActivity, profile
x = torch.ones(4, device="openreg")
profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
profiler.start()
x.add(1)
child = os.fork()
if child == 0:
    try:
        profiler.stop()
    except RuntimeError as error:
        os.write(1, b"forked subprocess" in str(error).encode() and b"refused\\n" or str(error).encode())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
x.mul(2)
profiler.stop()
print([event.name for event in profiler.events() if event.device_type.name == "OPENREG"])
""")
    assert result.stdout == "refused\n['aten::add', 'aten::mul']\n", result.stderr
    assert "not complete" not in result.stderr


@pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")
def test_a_profile_in_a_forked_child_says_why_it_lacks_the_device(python):
    result = python("""
import os
from torch.profiler import profile, ProfilerActivity
torch.ones(4, device="openreg")
child = os.fork()
if child == 0:
    profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
    profiler.start()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""")
    assert result.returncode == 0, result.stderr
    assert "UserWarning: torch.profiler on openreg: the profile is not complete: Cannot re-initialize" in result.stderr


def test_a_profile_that_begins_before_the_device_is_used_has_its_first_kernel(python):
    result = python("""
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
    torch.ones(4, device="openreg").mul(2)
print([event.name for event in profiler.events() if event.device_type.name == "OPENREG"])
""")
    assert result.stdout == "['aten::fill_', 'aten::mul']\n", result.stderr


def test_a_profile_of_the_host_alone_does_not_bring_the_device_up(python):
    result = python("""
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]):
    torch.ones(4).mul(2)
print(torch.openreg.is_initialized())
""")
    assert result.stdout == "False\n", result.stderr


def test_work_under_way_when_a_profile_ends_is_recorded(x):
    """Ending a recording waits for what was launched in it."""
    with profile(activities=list(BOTH)) as profiler:
        x.add(1)
        torch.openreg._sleep(20_000_000)
        y = x.mul(2)
    assert y.cpu().tolist() == [2, 2, 2, 2]
    assert "aten::mul" in [event.name for event in profiler.events() if event.device_type.name == "OPENREG"]


# OPENREG_PROFILE=trace.json.


def names(path):
    return [item.name for item in trace.read(path).work]


def test_a_auto_profile_is_profiled_without_a_changed_line(python, tmp_path):
    path = tmp_path / "trace.json"
    result = python("torch.ones(4, device='openreg').mul(2)", OPENREG_PROFILE="trace.json")
    assert result.returncode == 0, result.stderr
    assert f"OPENREG_PROFILE: wrote {path}" in result.stderr
    assert names(path) == ["aten::fill_", "aten::mul"]


def test_a_program_that_ends_with_an_exception_has_its_profile(python, tmp_path):
    result = python("torch.ones(4, device='openreg').mul(2); raise SystemExit(7)", OPENREG_PROFILE="trace.json")
    assert result.returncode == 7
    assert names(tmp_path / "trace.json") == ["aten::fill_", "aten::mul"]


def test_a_program_whose_device_failed_has_what_it_did_until_then(python, tmp_path):
    code = """
x = torch.ones(4, device="openreg")
torch.openreg.synchronize()
with torch.openreg.inject_faults("launch:2"):
    x.mul(2)
    x.add(1)
    torch.openreg.synchronize()
"""
    result = python(code, OPENREG_PROFILE="trace.json")
    assert "AcceleratorError" in result.stderr
    assert "the program ended with a failed device" in result.stderr
    assert names(tmp_path / "trace.json") == ["aten::fill_", "aten::mul", "aten::add"]


@pytest.mark.parametrize("path", ["missing/trace.json", "."])
def test_a_path_that_cannot_be_written_is_refused_before_the_work(python, path):
    result = python("print('worked')", OPENREG_PROFILE=path)
    assert result.returncode == 1
    assert result.stdout == ""
    assert f"ImportError: OPENREG_PROFILE={path} names a file that cannot be written" in result.stderr


def test_only_children_that_use_the_device_write_a_file(python, tmp_path):
    code = """
import json, os
torch.ones(4, device="openreg")
print(json.dumps(dict(os.environ)))
"""
    parent = python(code, OPENREG_PROFILE="trace.json")
    assert parent.returncode == 0, parent.stderr
    inherited = json.loads(parent.stdout)
    for work in ("torch.ones(4)", "torch.ones(4, device='openreg').exp()"):
        result = python(work, **inherited)
        assert result.returncode == 0, result.stderr
    (path,) = (path for path in tmp_path.glob("trace.*.json"))
    assert names(path) == ["aten::fill_", "aten::exp"]
    assert names(tmp_path / "trace.json") == ["aten::fill_"]


def test_without_the_variable_nothing_is_started(python, tmp_path):
    result = python("print(torch.autograd._profiler_enabled())")
    assert result.stdout == "False\n", result.stderr
    assert not list(tmp_path.iterdir())


def test_with_a_seed_virtual_times_begin_with_the_profile(python, tmp_path):
    code = """
x = torch.ones(4, device="openreg")
x.mul(2).exp()
"""
    result = python(code, OPENREG_PROFILE="trace.json", OPENREG_SCHEDULE_SEED="7")
    assert result.returncode == 0, result.stderr
    found = trace.read(tmp_path / "trace.json")
    assert [item.name for item in found.work] == ["aten::fill_", "aten::mul", "aten::exp"]
    assert all(before.end <= after.begin + 0.003 for before, after in pairwise(found.work))
    # An arrow from the host's clock to another one would lead anywhere.
    assert found.arrows == []
    # Years apart, if virtual times were shown as they are.
    assert found.end - found.begin < 600e6
