# SPDX-License-Identifier: BSD-3-Clause
"""A crash, a hang or a broken device fails one test, and everything else is reported as without isolation."""

import re

import library_runs
import pytest
from _platform import HAS_FORK
from _runs import run, write

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(not HAS_FORK, reason="the workers here are forked")

LOSSES = """
import ctypes, os, signal, sys, threading, time
import pytest

def test_before():
    assert True

def test_crash(capfd):
    with capfd.disabled():
        pass
    ctypes.string_at(0)

def test_crash_with_output():
    print("printed before")
    os.write(2, b"written before")
    ctypes.string_at(0)

def test_after_a_crash():
    assert True

def test_leaves():
    os._exit(4)

def test_exits():
    sys.exit(3)

def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_hangs():
    time.sleep(3600)

def test_hangs_in_a_thread_too():
    thread = threading.Thread(target=time.sleep, args=(3600,))
    thread.start()
    thread.join()

@pytest.fixture
def crashing_setup():
    ctypes.string_at(0)

def test_crash_in_setup(crashing_setup):
    raise AssertionError("is not reached")

@pytest.fixture
def crashing_teardown():
    yield
    ctypes.string_at(0)

def test_crash_in_teardown(crashing_teardown):
    pass

@pytest.mark.xfail(reason="known")
def test_expected_crash():
    ctypes.string_at(0)

@pytest.mark.xfail(raises=ZeroDivisionError)
def test_crash_instead_of_the_expected():
    ctypes.string_at(0)

class Unpicklable(Exception):
    def __init__(self, text, lock):
        super().__init__(text)
        self.lock = lock

def test_raises_what_cannot_be_pickled(record_property):
    record_property("lock", threading.Lock())
    raise Unpicklable("odd one", threading.Lock())

def test_fails():
    left, right = [1, 2], [1, 3]
    assert left == right

def test_last():
    assert True
"""

PASSING = {"test_before", "test_after_a_crash", "test_last"}


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("losses")
    write(folder, test_losses=LOSSES)
    return run(folder, "--isolate", "--isolate-limit=2", "-rA")


def test_losses_cost_nothing_but_their_tests(losses):
    assert losses.status == 1
    assert {name for name, test in losses.tests.items() if test.kind == "passed"} == PASSING
    assert len(losses.tests) == LOSSES.count("def test_")


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("test_crash", "its process crashed with SIGSEGV in the call of the test"),
        ("test_crash_with_output", "its process crashed with SIGSEGV in the call of the test"),
        ("test_leaves", "its process ended with status 4 in the call of the test"),
        ("test_exits", "SystemExit: 3"),
        ("test_is_killed", "its process crashed with SIGKILL in the call of the test"),
        ("test_hangs", "its process took longer than 2 s in the call of the test"),
        ("test_hangs_in_a_thread_too", "its process took longer than 2 s in the call of the test"),
        ("test_crash_instead_of_the_expected", "its process crashed with SIGSEGV in the call of the test"),
    ],
)
def test_the_failure_says_how_the_process_ended(losses, test, message):
    assert losses.tests[test].kind == "failed"
    assert losses.tests[test].message.splitlines()[0] == message


def test_a_crash_in_setup_or_teardown_is_an_error_there(losses):
    setup, teardown = losses.tests["test_crash_in_setup"], losses.tests["test_crash_in_teardown"]
    assert (setup.kind, teardown.kind) == ("error", "error")
    assert "crashed with SIGSEGV in the setup" in setup.message
    assert "crashed with SIGSEGV in the teardown" in teardown.message


@pytest.mark.parametrize("test", ["test_crash", "test_hangs", "test_hangs_in_a_thread_too", "test_crash_in_setup"])
def test_the_failure_has_the_python_stack_down_to_the_test(losses, test):
    text = losses.tests[test].text
    function = "crashing_setup" if "setup" in test else test
    assert re.search(rf'File ".*test_losses.py", line \d+ in {function}\n', text + "\n")
    assert "pluggy" not in text
    assert "openreg_testing" not in text


def test_what_a_crashing_test_printed_is_shown(losses):
    text = losses.output.partition("test_crash_with_output ___")[2].partition("\n___")[0]
    assert re.search(r"Captured stdout call -+\nprinted before\n", text)
    assert re.search(r"Captured stderr call -+\nwritten before$", text)


def test_a_crash_may_be_expected(losses):
    assert losses.tests["test_expected_crash"].kind == "skipped"
    assert "1 xfailed" in losses.output


def test_an_exception_need_not_be_picklable(losses):
    test = losses.tests["test_raises_what_cannot_be_pickled"]
    assert (
        test.message.endswith("Unpicklable: ('odd one', <unlocked _thread.lock object>)") or "odd one" in test.message
    )
    assert "lock object" in test.properties["lock"]


def test_an_assertion_is_explained_as_ever(losses):
    assert "assert [1, 2] == [1, 3]" in losses.tests["test_fails"].text
    assert "At index 1 diff: 2 != 3" in losses.tests["test_fails"].text


DEVICE = """
import os
import pytest
import torch

seen = []

def test_first():
    assert torch.ones(3, device="openreg").sum().item() == 3
    seen.append(os.getpid())

def test_shares_its_process():
    assert seen == [os.getpid()]

def test_loses_the_device():
    with torch.openreg.inject_faults("lose:1"), pytest.raises(RuntimeError, match="lost"):
        torch.ones(3, device="openreg")
        torch.openreg.synchronize()

def test_has_a_device():
    assert torch.ones(3, device="openreg").sum().item() == 3
    assert not seen

def test_leaves_an_error_behind():
    with torch.openreg.inject_faults("launch:1"):
        torch.ones(3, device="openreg")
        try:
            torch.openreg.synchronize()
        except RuntimeError:
            pass

def test_sees_no_error_of_others():
    torch.openreg.synchronize()
"""


def test_a_broken_device_costs_no_other_test(tmp_path):
    write(tmp_path, test_device=DEVICE)
    result = run(tmp_path, "--isolate")
    assert (set(result.kinds().values()), result.status) == ({"passed"}, 0), result.output
    assert "device 0 is lost" in result.tests["test_loses_the_device"].properties["openreg.broken_device"]
    assert "openreg.broken_device" not in result.tests["test_has_a_device"].properties


HOOK = """
import os

def pytest_openreg_broken_device():
    return "out of coolant" if os.path.exists("broken") else None
"""
HOOKED = """
import os, pathlib

processes = []

def test_one():
    processes.append(os.getpid())
    pathlib.Path("broken").touch()

def test_two():
    assert not processes
    pathlib.Path("broken").unlink()
    processes.append(os.getpid())

def test_three():
    assert processes == [os.getpid()]
"""


def test_another_plug_in_can_say_that_a_device_is_broken(tmp_path):
    write(tmp_path, conftest=HOOK, test_hooked=HOOKED)
    result = run(tmp_path, "--isolate")
    assert set(result.kinds().values()) == {"passed"}, result.output
    assert result.tests["test_one"].properties["openreg.broken_device"] == "out of coolant"


FIXTURES = """
import os
import pytest

@pytest.fixture(scope="session")
def session():
    print("enter session")
    yield os.getpid()
    print("leave session")

@pytest.fixture(scope="module")
def module(session):
    print("enter module")
    yield os.getpid()
    print("leave module")

@pytest.fixture
def function(module, session):
    assert module == session == os.getpid()
    yield
    print("leave function")
"""
USES_1 = """
def test_one(function):
    pass

def test_two(function):
    pass
"""
USES_2 = """
import os

def test_three(function):
    pass

def test_crash(function):
    os._exit(1)

def test_after(function):
    pass
"""


def told(result, test):
    """What a test printed, without the times and titles around it."""
    return [line for line in result.tests[test].text.splitlines() if line.startswith(("enter", "leave"))]


def test_fixtures_of_wider_scope_live_as_long_as_their_worker(tmp_path):
    write(tmp_path, conftest=FIXTURES, test_1=USES_1, test_2=USES_2)
    result = run(tmp_path, "--isolate", "-o", "junit_logging=all")
    assert told(result, "test_one") == ["enter session", "enter module", "leave function"]
    assert told(result, "test_two") == ["leave function", "leave module"]
    assert told(result, "test_three") == ["enter module", "leave function"]
    assert told(result, "test_after") == [
        "enter session",
        "enter module",
        "leave function",
        "leave module",
        "leave session",
    ]


FAILING_TEARDOWN = """
import pytest

@pytest.fixture(scope="session")
def session():
    yield
    raise LookupError("left too late")

def test_one(session):
    pass

@pytest.mark.faults("alloc:1")
def test_elsewhere():
    assert {passes}

def test_never():
    raise AssertionError
"""


def test_an_error_of_a_session_fixture_is_reported_though_the_run_stops(tmp_path):
    write(tmp_path, test_late=FAILING_TEARDOWN.format(passes=False))
    result = run(tmp_path, "--isolate", "-x")
    assert "LookupError: left too late" in result.output
    assert "INTERNALERROR" not in result.output


def test_an_error_of_a_session_fixture_is_an_error_of_the_last_test(tmp_path):
    write(tmp_path, test_late=FAILING_TEARDOWN.partition("def test_never")[0].format(passes=True))
    result = run(tmp_path, "--isolate")
    assert result.kinds() == {"test_one": "passed", "test_elsewhere": "error"}
    assert "LookupError: left too late" in result.tests["test_elsewhere"].message


def test_tests_of_this_process_leave_their_fixtures_before_those_of_others(tmp_path):
    mixed = USES_1 + "import pytest\n@pytest.mark.faults('alloc:1')\ndef test_forked(function):\n    pass\n"
    write(tmp_path, conftest=FIXTURES, test_1=mixed, test_2=USES_1.replace("one", "three").replace("two", "four"))
    result = run(tmp_path, "-o", "junit_logging=all")
    assert set(result.kinds().values()) == {"passed"}, result.output
    assert told(result, "test_one") == ["enter session", "enter module", "leave function"]
    assert told(result, "test_four") == ["leave function", "leave module", "leave session"]


def test_the_run_stops_at_the_first_failure(tmp_path):
    write(tmp_path, test_losses=LOSSES)
    result = run(tmp_path, "--isolate", "-x")
    assert list(result.tests) == ["test_before", "test_crash"]
    assert "stopping after 1 failures" in result.output


def test_every_worker_of_xdist_isolates(tmp_path):
    write(tmp_path, test_losses=LOSSES)
    result = run(tmp_path, "--isolate", "--isolate-limit=2", "-n2", "-k", "not hangs_in_a_thread")  # one hang is enough
    assert {name for name, test in result.tests.items() if test.kind == "passed"} == PASSING
    assert "crashed with SIGSEGV in the call" in result.tests["test_crash"].message
    assert "worker 'gw" not in result.output  # of xdist: none was lost


WARNING = """
import warnings
import pytest

class Special(UserWarning):
    def __init__(self, text, more):
        super().__init__(text)

def test_warns():
    warnings.warn("mind the step", DeprecationWarning)
    warnings.warn(Special("a special one", 1))

@pytest.mark.filterwarnings("error")
def test_may_not_warn():
    warnings.warn("mind the step", DeprecationWarning)
"""


def test_warnings_are_reported_once_and_are_errors_where_that_is_asked(tmp_path):
    write(tmp_path, test_warning=WARNING)
    result = run(tmp_path, "--isolate")
    assert result.kinds() == {"test_warns": "passed", "test_may_not_warn": "failed"}
    summary = result.output.partition("warnings summary")[2].partition("short test summary")[0]
    assert summary.count("DeprecationWarning: mind the step") == 1
    assert summary.count("Special: a special one") == 1


PRINTING = """
import sys
import pytest

def test_prints(capsys):
    print("captured by the fixture")
    assert capsys.readouterr().out == "captured by the fixture\\n"
    with capsys.disabled():
        print("past the capture")
    print("to standard output")
    print("to standard error", file=sys.stderr)
    assert False
"""


def test_output_is_shown_as_without_isolation(tmp_path):
    write(tmp_path, test_printing=PRINTING)
    result = run(tmp_path, "--isolate")
    shown = result.output.partition("FAILURES")[2]
    assert re.search(r"Captured stdout call -+\nto standard output\n", shown)
    assert re.search(r"Captured stderr call -+\nto standard error\n", shown)
    assert "past the capture" in result.output.partition("FAILURES")[0]


def test_output_that_is_not_captured_is_shown(tmp_path):
    write(tmp_path, test_printing="def test_prints():\n    print('not captured')")
    assert "not captured" in run(tmp_path, "--isolate", "-s").output


ENDING = """
import pytest

def test_one():
    pass

def test_ends():
    {}

def test_never():
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("statement", "status", "text"),
    [
        ("pytest.exit('enough', returncode=7)", 7, "Exit: enough"),
        ("raise KeyboardInterrupt", 2, "KeyboardInterrupt"),
    ],
)
def test_a_test_can_end_the_run(tmp_path, statement, status, text):
    write(tmp_path, test_ending=ENDING.format(statement))
    result = run(tmp_path, "--isolate")
    assert (result.status, result.tests.get("test_never")) == (status, None)
    assert text in result.output


def test_a_test_can_ask_the_run_to_stop(tmp_path):
    code = ENDING.format("request.session.shouldstop = 'seen enough'").replace("ends()", "ends(request)")
    write(tmp_path, test_ending=code)
    result = run(tmp_path, "--isolate")
    assert result.kinds() == {"test_one": "passed", "test_ends": "passed"}
    assert "seen enough" in result.output


TMP_PATH = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_has_a_folder(tmp_path, number):
    (tmp_path / "file").write_text("")

@pytest.mark.faults("alloc:1")
def test_has_one_too(tmp_path):
    (tmp_path / "file").write_text("")
"""


def test_all_processes_have_one_folder_for_temporary_files(tmp_path):
    write(tmp_path, test_folders=TMP_PATH)
    result = run(tmp_path, "--isolate", PYTEST_DEBUG_TEMPROOT=str(tmp_path))
    assert set(result.kinds().values()) == {"passed"}, result.output
    (of_user,) = tmp_path.glob("pytest-of-*")
    assert [folder.name for folder in of_user.iterdir() if not folder.is_symlink()] == ["pytest-0"]


MODULE_LEVEL = """
import os
import pytest
import torch

ONES = torch.ones(3, device="openreg")

def test_one():
    assert ONES.sum().item() == 3

def test_crash():
    os._exit(9)

def test_two():
    assert ONES.sum().item() == 3

@pytest.mark.schedules(seeds=1)
@pytest.mark.device_settings(OPENREG_DEVICE_COUNT=3)
def test_settings():
    assert torch.openreg.device_count() == 3
    assert os.environ["OPENREG_SCHEDULE_SEED"] == "1"
"""


def test_a_module_that_uses_the_device_when_imported_is_named_and_its_tests_run(tmp_path):
    write(tmp_path, test_module=MODULE_LEVEL)
    result = run(tmp_path, "--isolate", fresh=True)  # its workers could not be forked, either
    assert result.kinds() == {
        "test_one": "passed",
        "test_crash": "failed",
        "test_two": "passed",
        "test_settings": "passed",
    }
    assert "started, not forked" in result.output
    assert "the device openreg is in use" in result.output
    assert "noticed after test_module.py" in result.output
    assert "ended with status 9 in the call" in result.tests["test_crash"].message


OPENMP = """
import torch

TABLE = torch.ones(2_000_000).add_(1)  # as many as start OpenMP's threads

def test_computes():
    assert torch.ones(2_000_000).add_(1).sum().item() == 4_000_000
    assert torch.get_num_threads() == 2
"""


def test_a_module_that_computes_when_imported_does_not_prevent_forks(tmp_path):
    write(tmp_path, test_openmp=OPENMP)
    result = run(tmp_path, "--isolate", OMP_NUM_THREADS="2")
    assert result.kinds() == {"test_computes": "passed"}, result.output
    assert "started, not forked" not in result.output


SLOW = """
import time
import pytest

@pytest.mark.timeout(1)
def test_slow():
    time.sleep(3600)

def test_next():
    pass
"""


def test_a_timeout_of_pytest_timeout_fails_the_test(tmp_path):
    write(tmp_path, test_slow=SLOW)
    result = run(tmp_path, "--isolate")
    assert result.kinds() == {"test_slow": "failed", "test_next": "passed"}
    assert "Timeout" in result.tests["test_slow"].message


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--isolate-limit=0"], "give a number of seconds above 0, not '0'"),
        (["--isolate-limit=soon"], "give a number of seconds above 0, not 'soon'"),
        (["--isolate", "--pdb"], "--isolate runs tests in other processes, which --pdb cannot reach"),
        (["--isolate", "--trace"], "--isolate runs tests in other processes, which --trace cannot reach"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(pytester, monkeypatch, arguments, text):
    pytester.makepyfile("def test_one():\n    pass")
    result = library_runs.run(pytester, monkeypatch, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert text in result.stderr.str()
