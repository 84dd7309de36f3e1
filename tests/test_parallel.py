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

NOT_RUN = "FAILED: not run, as a wheel could not be built"
SESSIONS = [Session("ops", ("openreg-ops",)), Session("lint"), Session("amp", ("openreg-amp",)), Session("asan")]


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    monkeypatch.setattr(parallel, "usable_cores", lambda: 8)


@pytest.mark.parametrize(
    ("failing", "run", "lost"),
    [
        ([], ["wheels", "lint", "asan", "ops", "amp"], {}),
        (["lint", "ops"], ["wheels", "lint", "asan", "ops", "amp"], {"lint": parallel.FAILED, "ops": parallel.FAILED}),
        (["wheels"], ["wheels", "lint", "asan"], {"wheels": "FAILED", **dict.fromkeys(["ops", "amp"], NOT_RUN)}),
    ],
)
def test_all_run_after_the_wheels_that_they_need_and_a_failure_stops_no_other(failing, run, lost):
    begun, ended = {}, []

    def one(name):
        begun[name] = [name for name, _ in ended]
        return name not in failing

    outcomes = parallel.run_all(SESSIONS, one, lambda *what: ended.append(what))
    assert {**dict.fromkeys(["wheels", "lint", "asan", "ops", "amp"], "passed"), **lost} == outcomes
    assert sorted(ended) == sorted((name, name not in failing) for name in run)
    assert begun["wheels"] == []
    assert all("wheels" in begun[name] for name in ("ops", "amp") if name in begun)


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


@pytest.mark.parametrize("argument", ["--list", "--all"])
def test_ci_lists_what_nox_runs_and_refuses_what_it_does_not_know(argument):
    command = [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "-s", "ci", "--", argument]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    listed = {line.split()[0] for line in result.stdout.splitlines() if line}
    assert listed == ({item.name for item in noxfile.DEFAULT} | {"wheels", "all"} if argument == "--list" else set())
    assert result.returncode == (0 if argument == "--list" else 2)
    assert ("usage: nox -s ci [-- --list]" in result.stderr) == (argument != "--list")
    assert "set -- -s ci\n" in (ROOT / ".ci" / "run").read_text("utf-8")
