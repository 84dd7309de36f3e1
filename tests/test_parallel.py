# SPDX-License-Identifier: BSD-3-Clause
"""What `.ci/run` runs: the sessions of nox two at a time, each to its end, whatever becomes of the others."""

import subprocess
import sys
import threading

import pytest

import noxfile
from tools import parallel
from tools.affected import Session
from tools.packages import ROOT

SESSIONS = [Session("ops", ("openreg-ops",)), Session("lint"), Session("amp", ("openreg-amp",)), Session("asan")]


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    monkeypatch.setattr(parallel, "usable_cores", lambda: 8)


def run_all(failing=()):
    begun, ended = [], []

    def run(name):
        begun.append((name, tuple(name for name, _ in ended)))
        return name not in failing

    return parallel.run_all(SESSIONS, run, lambda *what: ended.append(what)), begun, ended


def test_every_session_runs_and_the_wheels_come_before_those_that_need_them():
    outcomes, begun, ended = run_all()
    assert outcomes == dict.fromkeys(["wheels", "lint", "asan", "ops", "amp"], "passed")
    assert sorted(ended) == sorted((name, True) for name in outcomes)
    assert begun[0] == ("wheels", ())
    assert all("wheels" in before for name, before in begun if name in ("ops", "amp"))


def test_a_failure_stops_no_other_session():
    outcomes, begun, _ = run_all(failing=("lint", "ops"))
    assert {name for name, outcome in outcomes.items() if outcome == "FAILED"} == {"lint", "ops"}
    assert len(begun) == 5


def test_without_wheels_the_sessions_that_need_them_have_failed():
    outcomes, begun, _ = run_all(failing=("wheels",))
    assert {name for name, _ in begun} == {"wheels", "lint", "asan"}
    assert outcomes["ops"] == outcomes["amp"] == "FAILED: not run, as a wheel could not be built"
    assert outcomes["lint"] == "passed"


def test_two_run_at_a_time():
    # Each waits for another one, so that one after the other they would wait in vain.
    barrier, lock, running, most = threading.Barrier(2), threading.Lock(), set(), []

    def run(name):
        with lock:
            running.add(name)
            most.append(len(running))
        barrier.wait(timeout=120)
        with lock:
            running.discard(name)
        return True

    sessions = [Session(str(number)) for number in range(6)]
    assert set(parallel.run_all(sessions, run, lambda *_: None).values()) == {"passed"}
    assert max(most) == 2


def test_an_error_ends_the_run():
    def run(name):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        parallel.run_all(SESSIONS, run, lambda *_: None)


PROJECT = f"""
import atexit, os, pathlib, sys
import nox
sys.path.insert(0, {str(ROOT)!r})
from tools.affected import Session
from tools.parallel import TIMES, run_parallel
from tools.stopwatch import Stopwatch
HERE = pathlib.Path(__file__).resolve()
STOPWATCH = Stopwatch({{"good": 1}})
atexit.register(STOPWATCH.report, pathlib.Path(os.environ.get(TIMES, HERE.parent / "times.txt")))

@nox.session(venv_backend="none")
def ci(session):
    run_parallel(session, [Session("good", budget=1), Session("bad")], {{}}, STOPWATCH, HERE)

@nox.session(venv_backend="none")
def good(session):
    with STOPWATCH.step("good", "sleep"):
        session.run(sys.executable, "-c", "import time; time.sleep(1.2); print('a' + 'ha')", external=True)

@nox.session(venv_backend="none")
def bad(session):
    session.error("broken")
"""


def test_what_each_session_printed_its_times_and_its_outcome_are_shown(tmp_path, monkeypatch):
    # This test is run by a nox that has its own.
    monkeypatch.delenv(parallel.TIMES, raising=False)
    (tmp_path / "noxfile.py").write_text(PROJECT, "utf-8")
    command = [sys.executable, "-m", "nox", "-s", "ci"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    said = result.stdout
    assert said.index("===== good =====") < said.index("\naha\n") < said.index("===== good passed =====")
    assert "===== bad FAILED =====" in said
    assert "good  passed\n" in said
    assert "bad   FAILED\n" in said
    assert said.index("good  sleep") < said.index("OVER BUDGET") < said.index("good took ")
    assert "broken" in (tmp_path / ".nox" / "logs" / "bad.log").read_text("utf-8")


def test_ci_runs_what_nox_runs(capfd):
    command = [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "-s", "ci", "--", "--list"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    listed = [line.split()[0] for line in result.stdout.splitlines() if line]
    assert set(listed) == {item.name for item in noxfile.DEFAULT} | {"wheels", "all"}
    assert "set -- -s ci\n" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_an_argument_that_it_does_not_know_is_refused():
    command = [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "-s", "ci", "--", "--all"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "usage: nox -s ci [-- --list]" in result.stderr
