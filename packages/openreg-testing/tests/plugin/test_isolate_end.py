# SPDX-License-Identifier: BSD-3-Clause
"""No process outlives an isolated run, however the run ends."""

import signal
import subprocess
import time
from pathlib import Path

import pytest
from _platform import IS_LINUX
from _pythons import environment
from _runs import GUARD, command, write

SUBPROCESS_TESTS = """
import os, pathlib, subprocess, sys, time

def test_waits():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    pathlib.Path("ready.new").write_text(f"{os.getpid()} {os.getppid()} {child.pid}")
    pathlib.Path("ready.new").rename("ready")
    time.sleep(3600)
"""


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def default_interrupt():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a run in the background inherits that it is ignored


@pytest.mark.skipif(not IS_LINUX, reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_run(tmp_path, number):
    write(tmp_path, test_waiting=SUBPROCESS_TESTS)
    deadline = time.monotonic() + GUARD
    with subprocess.Popen(
        command("--isolate"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=default_interrupt,
    ) as tests:
        while not (tmp_path / "ready").exists():
            assert tests.poll() is None, tests.stdout.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        processes = (tmp_path / "ready").read_text().split()
        tests.send_signal(number)
        output = tests.stdout.read()
    assert len(processes) == 3
    while any(map(is_running, processes)):
        assert time.monotonic() < deadline, processes
        time.sleep(0.01)
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in output
        assert "INTERNALERROR" not in output
        assert tests.returncode == 2
