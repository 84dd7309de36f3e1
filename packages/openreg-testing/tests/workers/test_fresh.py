# SPDX-License-Identifier: BSD-3-Clause
"""A program that is forked from a prepared interpreter behaves as in a new interpreter."""

import os
import signal
import subprocess
import sys
import time

import pytest
from _platform import HAS_FORK, IS_LINUX
from _processes import wait_until_gone

from openreg_testing.fresh import FreshPython
from openreg_testing.workers import fresh as implementation

forked = pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
ENVIRONMENT |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def interpreter():
    python = FreshPython()
    yield python
    python.close()


@pytest.fixture
def python(interpreter, tmp_path):
    def run(*arguments, env=ENVIRONMENT, **how):
        return interpreter.run(*arguments, **{"env": env, "folder": tmp_path, **how})

    return run


@forked
def test_programs_are_processes_of_their_own_in_which_torch_is_imported(python):
    code = "import os, sys; print(os.getpid(), os.getppid(), 'torch' in sys.modules)"
    one, two = (python("-c", code).stdout.split() for _ in range(2))
    assert one[0] != two[0]
    assert one[1] == two[1]  # the interpreter that forks
    assert one[2] == two[2] == "True"


def test_status_and_both_streams_are_given(python):
    done = python("-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    done = python("-c", "import os; os.write(1, b'of the system'); os._exit(4)")
    assert (done.returncode, done.stdout, done.stderr) == (4, "of the system", "")
    done = python("-c", "import sys; print(repr(sys.stdin.read()))")
    assert (done.returncode, done.stdout, done.stderr) == (0, "''\n", "")


def test_folder_environment_and_path_are_those_that_were_given(python, tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "found.py").write_text("ONE = 1\n", "utf-8")
    code = "import found, os; print(os.getcwd(), found.ONE, os.environ.get('OF_A_TEST'), os.environ.get('HOME'))"
    env = {name: value for name, value in ENVIRONMENT.items() if name != "HOME"}
    done = python("-c", code, env={**env, "OF_A_TEST": "yes", "PYTHONPATH": str(tmp_path / "beside")})
    assert done.stdout == f"{tmp_path.resolve()} 1 yes None\n", done.stderr
    assert "No module named 'found'" in python("-c", code).stderr


SHOWN = "import sys\nprint(__name__, sys.argv, sys.path[0])\n"


def test_programs_are_named_as_for_python(python, tmp_path):
    """Each form is compared with what Python itself does, which needs no torch for it."""
    (tmp_path / "parts").mkdir()
    for name in ("program.py", "parts/program.py", "parts/__main__.py"):
        (tmp_path / name).write_text(SHOWN, "utf-8")
    for arguments in (
        ("-c", SHOWN, "one", "-m"),
        ("-m", "program", "one"),
        ("-m", "parts", "one"),
        ("parts/program.py", "-c", "one"),
    ):
        command = [sys.executable, *arguments]
        alone = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True)
        assert python(*arguments).stdout == alone.stdout


FAILING = """
def inner():
    raise LookupError("not found")

inner()
"""


@pytest.mark.parametrize("form", ["-c", "-m", "file"])
def test_an_exception_is_printed_as_python_prints_it(python, tmp_path, form):
    (tmp_path / "failing.py").write_text(FAILING, "utf-8")
    file = "<string>" if form == "-c" else str(tmp_path / "failing.py")
    arguments = {"-c": ("-c", FAILING), "-m": ("-m", "failing"), "file": (file,)}[form]
    done = python(*arguments)
    first, *frames, last = [line for line in done.stderr.splitlines() if line.startswith(("Traceback", "  File", "L"))]
    assert (done.returncode, first, last) == (1, "Traceback (most recent call last):", "LookupError: not found")
    own = [f'  File "{file}", line 5, in <module>', f'  File "{file}", line 3, in inner']
    assert [frame for frame in frames if "<frozen runpy>" not in frame] == own


def test_a_text_is_an_exit_status_too(python):
    done = python("-c", "raise SystemExit('that is all')")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "that is all\n")
    assert python("-c", "raise SystemExit").returncode == 0


@forked
def test_a_signal_is_a_negative_status(python):
    assert python("-c", "import os; os.abort()").returncode == -signal.SIGABRT
    assert python("-c", "print('the next one')").stdout == "the next one\n"


@forked
@pytest.mark.parametrize("fresh", [False, True])
def test_what_takes_too_long_is_killed_and_raises(python, fresh):
    limit = 0.1  # seconds, of a program that would not end
    with pytest.raises(subprocess.TimeoutExpired):
        python("-c", "import time; time.sleep(3600)", timeout=limit, fresh=fresh)
    assert python("-c", "print('the next one')").stdout == "the next one\n"


STARTS_A_CHILD = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], stdout=subprocess.PIPE)
pathlib.Path("written").write_text(str(child.pid))
pathlib.Path("written").rename("child")  # which is there with its text or not at all
time.sleep(3600)
"""


@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
@pytest.mark.parametrize("fresh", [False, True])
def test_what_it_started_is_killed_with_it(python, tmp_path, fresh):
    for timeout in (1, 10, 100):  # a busy machine may need longer to start the child
        with pytest.raises(subprocess.TimeoutExpired):
            python("-c", STARTS_A_CHILD, timeout=timeout, fresh=fresh)
        if (tmp_path / "child").exists():
            break
    wait_until_gone(int((tmp_path / "child").read_text("utf-8")))


@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
def test_what_is_interrupted_is_killed_and_leaves_no_reply_to_the_next_program(python, tmp_path, monkeypatch):
    class Interrupted:
        @staticmethod
        def select(*_):
            while not (tmp_path / "child").exists():
                time.sleep(0.01)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(implementation, "select", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            python("-c", STARTS_A_CHILD)
    wait_until_gone(int((tmp_path / "child").read_text("utf-8")))
    assert python("-c", "print('the next one')").stdout == "the next one\n"


@forked
@pytest.mark.parametrize("during", [False, True], ids=["between two programs", "during a program"])
def test_the_end_of_the_interpreter_that_forks_is_reported_and_the_next_program_gets_another(tmp_path, during):
    python = FreshPython()

    def run(code):
        return python.run("-c", code, env=ENVIRONMENT, folder=tmp_path).stdout

    show = "import os; print(os.getppid())"
    first = int(run(show))
    end = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(3600)"
    if not during:
        os.kill(first, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"FreshPython\.run\(\): .* ended with status -9; its output is in"):
        run(end if during else show)
    assert int(run(show)) != first
    python.close()


@forked
def test_what_is_read_at_the_start_of_python_gets_an_interpreter_that_begins_with_nothing(python):
    code = "import os, sys; print(os.getppid(), 'torch' in sys.modules, sys.flags.utf8_mode, sys.flags.optimize)"
    forking = python("-c", code).stdout.split()[0]
    assert forking != str(os.getpid())
    mode, other = ("0", "1") if sys.flags.utf8_mode else ("1", "0")
    begun = python("-c", code, env={**ENVIRONMENT, "PYTHONUTF8": mode}).stdout.split()
    assert begun == [str(os.getpid()), "False", mode, "0"]
    assert other != mode
    assert python("-c", code, fresh=True).stdout.split()[:2] == [str(os.getpid()), "False"]
    assert python("-O", "-c", code).stdout.split()[1:] == ["False", str(sys.flags.utf8_mode), "1"]
    # Variables of backends and of this test are read later.
    assert python("-c", code, env={**ENVIRONMENT, "OPENREG_POISON": "1"}).stdout.split()[0] == forking


def test_a_backend_is_loaded_where_torch_would_load_it(python):
    code = "import torch; print(torch._C._get_privateuse1_backend_name())"
    assert python("-c", code).stdout == "privateuseone\n"
    loading = {name: value for name, value in ENVIRONMENT.items() if name != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    for env in (loading, {**loading, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}):
        assert python("-c", code, env=env).stdout == "openreg\n"


# Two threads write: each by one call, since `print` writes a text and its end by two.
ENDING = """
import atexit, os, sys, threading

class Kept:
    def __del__(self, write=os.write):
        write(1, b"taken apart\\n")

kept = Kept()
atexit.register(print, "at exit", flush=True)
threading.Thread(target=sys.stdout.write, args=("in a thread;",)).start()
sys.stdout.write("begun;")
"""


def test_a_program_ends_as_python_does_and_its_modules_where_that_is_asked(python):
    ended = python("-c", ENDING).stdout
    assert sorted(ended.split(";")) == ["at exit\n", "begun", "in a thread"]
    finalized = python("-c", ENDING, finalize=True)
    assert finalized.stdout.endswith("at exit\ntaken apart\n")
    assert (finalized.returncode, finalized.stderr) == (0, "")
    assert python("-c", "raise SystemExit(7)", finalize=True).returncode == 7


def test_options_and_modules_are_those_of_the_interpreter_which_begins_anew_when_it_was_closed(tmp_path):
    (tmp_path / "slow.py").write_text("print('imported', flush=True)\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        python = FreshPython("slow", options=("-X", "utf8=1"))
    python.close()  # nothing has begun
    code = "import os, sys; print(os.getppid(), sys.flags.utf8_mode, 'slow' in sys.modules, sys.argv[1] in sys.path)"
    interpreters = []
    for _ in range(2):
        done = python.run("-c", code, str(tmp_path), env=ENVIRONMENT, folder=tmp_path)
        interpreter, *shown = done.stdout.split()
        assert (shown, done.stderr) == (
            ["1", str(HAS_FORK), "False"],
            "",
        )  # the program's own environment names no path
        python.close()
        interpreters.append(int(interpreter))
    if HAS_FORK:
        assert interpreters[0] != interpreters[1]
        with pytest.raises(ProcessLookupError):
            os.kill(interpreters[0], 0)
    else:
        assert set(interpreters) == {os.getpid()}
    done = python.run("-c", code, str(tmp_path), env=ENVIRONMENT, folder=tmp_path, fresh=True)
    assert done.stdout.split() == [str(os.getpid()), "1", "False", "False"]
