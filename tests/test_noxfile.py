# SPDX-License-Identifier: BSD-3-Clause
"""The noxfile is loaded by a nox that was installed alone; its sessions run two at a time, within their budgets."""

import re
import subprocess
import sys
import threading
from dataclasses import replace
from unittest.mock import Mock

import pytest

import noxfile
from tools import budgets, new_package, parallel, stopwatch
from tools.affected import Session, lane_session
from tools.packages import ROOT, discover, read_package
from tools.stopwatch import Stopwatch

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
    # Each waits for another one, so that one after the other they would wait in vain; a third would be free to begin.
    barrier, free = threading.Barrier(2), threading.Semaphore(2)

    def run(name):
        assert free.acquire(blocking=False)
        barrier.wait(timeout=120)
        free.release()
        return True

    sessions = [Session(str(number)) for number in range(6)]
    assert set(parallel.run_all(sessions, run, lambda *_: None).values()) == {"passed"}


def test_an_error_ends_the_run():
    with pytest.raises(OSError, match="no space left"):
        parallel.run_all(SESSIONS, Mock(side_effect=OSError("no space left")), lambda *_: None)


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


def test_ci_lists_what_nox_runs():
    command = [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "-s", "ci", "--", "--list"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    listed = {line.split()[0] for line in result.stdout.splitlines() if line}
    assert listed == {item.name for item in noxfile.DEFAULT} | {"wheels", "all"}
    assert "set -- -s ci\n" in (ROOT / ".ci" / "run").read_text("utf-8")


MODULES = {"pyyaml": "yaml", "pyproject-metadata": "pyproject_metadata", "cogapp": "cogapp.cogapp"}
NEEDS = [re.match(r"[\w-]+", item)[0] for item in (*noxfile.LINT_NEEDS, *noxfile.EXCERPTS)]
# nox itself, what it needs, and what stands in for a module that newer interpreters bring.
INSTALLED_LATER = sorted(set(NEEDS) - {"nox", "packaging", "tomli"})


def load(*missing):
    """Loads the noxfile in a process where some modules are not there."""
    program = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); import noxfile"
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_it_needs_nothing_that_a_session_installs():
    done = load(*(MODULES.get(name, name.replace("-", "_")) for name in INSTALLED_LATER))
    assert done.returncode == 0, done.stderr
    for module in ("nox", "packaging"):
        done = load(module)
        assert done.returncode != 0
        assert module in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("affected -- nonsense", "affected: 'nonsense' and HEAD have no commit in common"),
        ("affected", "usage: nox -s affected -- REVISION"),
        ("ci -- --all", "usage: nox -s ci [-- --list]"),
        ("release -- v999", "the tag v999 does not fit"),
        ("torch -- 2.12", "choose one of 2.13"),
        ("subsets -- ops+amp", "no subset is called 'ops+amp'; there are: runtime,"),
    ],
)
def test_a_session_refuses_what_it_does_not_know_with_exit_status_2(arguments, said):
    command = [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "--no-venv", "-s", *arguments.split()]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert said in result.stderr


BUDGETS = {"lint": 10, "build openreg-ops": 100}
OVER = "lint took 12 s, and its budget is 10 s (processors worked 0 s for it)"


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the stopwatch reads, one after the other."""
    readings = []
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: readings.pop(0) if len(readings) > 1 else readings[0])
    monkeypatch.setattr(stopwatch, "processor_seconds", lambda: 0.0)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return readings


def measured(clock, *readings, steps=("install", "pytest")):
    """A run of steps of lint; the readings are the beginning, and begin and end of each."""
    clock += readings
    watch = Stopwatch(BUDGETS)
    for name in steps:
        with watch.step("lint", name):
            pass
    return watch


@pytest.mark.parametrize(("seconds", "on_github"), [(12, False), (12, True), (10, False), (10, True)])
def test_a_run_over_its_budget_says_so(clock, tmp_path, capsys, monkeypatch, seconds, on_github):
    if on_github:
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
    measured(clock, 0, 0, 7, 7, seconds).report(tmp_path / "deep" / "times.txt")
    printed, written = capsys.readouterr().out, (tmp_path / "deep" / "times.txt").read_text("utf-8")
    assert "pytest" in printed.partition("OVER BUDGET")[0]
    assert [OVER in printed.partition("OVER BUDGET")[2], OVER in written] == [seconds == 12] * 2
    assert (f"\n::warning title=over budget::{OVER}\n" in printed) == (seconds == 12 and on_github)


def test_a_wheel_counts_for_its_package_whoever_needs_it_first(clock):
    watch = measured(clock, 0, 0, 60, 60, 65, steps=("build openreg-ops", "install"))
    assert watch.taken() == {"build openreg-ops": (60, 0), "lint": (5, 0)}


def test_steps_of_other_processes_count_and_failed_ones_too(clock, tmp_path, capsys):
    watch = measured(clock, 0, 0, 7, 7, steps=("install",))
    clock.append(12)
    with pytest.raises(RuntimeError), watch.step("lint", "pytest"):
        raise RuntimeError
    watch.report(tmp_path / "lint.json")
    assert capsys.readouterr().out == ""
    watch = Stopwatch(BUDGETS)
    watch.add(tmp_path / "lint.json")
    watch.add(tmp_path / "one that failed before its first step.json")
    watch.report(tmp_path / "times.txt")
    assert OVER in capsys.readouterr().out


def test_time_between_steps_is_the_environments_only_before_the_first_one(clock):
    clock += [0, 5, 6, 9, 10, 20, 21, 21]
    watch = Stopwatch()
    for session in ("test-openreg-a", "test-openreg-a", "test-openreg-b"):
        with watch.step(session, "pytest"):
            pass
    gaps = [line.split()[:-1] for line in watch.table().splitlines() if "pytest" not in line]
    assert gaps[1:-1] == [
        ["test-openreg-a", "create", "environment", "5.0"],
        ["test-openreg-a", "between", "steps", "3.0"],
        ["test-openreg-b", "create", "environment", "10.0"],
    ]


def test_every_session_declares_its_budget():
    declared = {item.name: item.budget for item in [*noxfile.DEFAULT, *noxfile.SLOW]}
    declared |= {f"build {name}": package.budget.get("build", 0) for name, package in noxfile.PACKAGES.items()}
    assert {name: seconds for name, seconds in declared.items() if type(seconds) is not int or seconds <= 0} == {}


@pytest.mark.parametrize(
    ("alone", "lanes", "seconds"),
    [
        ((), (50, 20), 85),
        ((), (50, 40, 30), 105),
        ((), (30, 40, 50, 45), 120),
        ((20,), (50,), 85),  # beside the wheels
        ((60,), (50, 10), 85),  # goes on beside the first lane
        ((30, 20), (50, 40), 90),
    ],
)
def test_wheels_come_before_sessions_that_need_them_and_two_run_at_a_time(alone, lanes, seconds):
    amp = read_package(noxfile.PACKAGES["openreg-amp"].folder)
    found = {str(build): replace(amp, budget={"build": build}) for build in (30, 5)}
    sessions = [Session(str(budget), budget=budget) for budget in alone]
    sessions += [Session(str(budget), ("openreg-amp",), budget=budget) for budget in lanes]
    assert budgets.expected(sessions, found) == seconds


def test_fourteen_packages_leave_the_run_within_its_limit(tmp_path):
    (tmp_path / "templates").symlink_to(ROOT / "templates", target_is_directory=True)
    to_come = 14 - len(noxfile.PACKAGES)
    for number in range(to_come):
        new_package.create(tmp_path, f"openreg-stub{number}", new_package.DESCRIPTION)
    added = discover(tmp_path)
    assert len(added) == to_come
    sessions = [*noxfile.DEFAULT, *map(lane_session, added.values())]
    assert budgets.expected(sessions, {**noxfile.PACKAGES, **added}) <= budgets.LIMIT
