# SPDX-License-Identifier: BSD-3-Clause
"""Each lane declares what it may take, together they fit, and a run that takes more says so and passes."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

import noxfile
from tools import budgets, new_package, stopwatch
from tools.affected import Session, lane_session
from tools.packages import ROOT, discover, read_package
from tools.stopwatch import Stopwatch

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


def measured(clock, *readings):
    """A run of two steps of lint; the readings are the beginning, and begin and end of each."""
    clock += readings
    watch = Stopwatch(BUDGETS)
    for name in ("install", "pytest"):
        with watch.step("lint", name):
            pass
    return watch


def test_a_run_over_its_budget_says_so(clock, tmp_path, capsys):
    measured(clock, 0, 0, 7, 7, 12).report(tmp_path / "times.txt")
    printed = capsys.readouterr().out
    assert printed.index("pytest") < printed.index("OVER BUDGET") < printed.index(OVER)
    assert OVER in (tmp_path / "times.txt").read_text("utf-8")
    assert "::warning" not in printed


def test_on_github_it_is_a_warning_of_the_run(clock, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    measured(clock, 0, 0, 7, 7, 12).report(tmp_path / "times.txt")
    assert f"\n::warning title=over budget::{OVER}\n" in capsys.readouterr().out


def test_a_run_within_its_budget_says_nothing(clock, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    measured(clock, 0, 0, 7, 7, 10).report(tmp_path / "times.txt")
    printed = capsys.readouterr().out
    assert "OVER BUDGET" not in printed
    assert "::warning" not in printed


def test_a_wheel_counts_for_its_package_whoever_needs_it_first(clock):
    clock += [0, 0, 60, 60, 65]
    watch = Stopwatch(BUDGETS)
    for name in ("build openreg-ops", "install"):
        with watch.step("lint", name):
            pass
    assert watch.taken() == {"build openreg-ops": (60, 0), "lint": (5, 0)}


def test_steps_of_other_processes_count(clock, tmp_path, capsys):
    measured(clock, 0, 0, 7, 7, 12).report(tmp_path / "lint.json")
    assert capsys.readouterr().out == ""
    assert [step[:2] for step in json.loads((tmp_path / "lint.json").read_text("utf-8"))] == [
        ["lint", "install"],
        ["lint", "pytest"],
    ]
    watch = Stopwatch(BUDGETS)
    watch.add(tmp_path / "lint.json")
    watch.add(tmp_path / "one that failed before its first step.json")
    watch.report(tmp_path / "times.txt")
    assert OVER in capsys.readouterr().out


PLANTED = f"""
import atexit, pathlib, sys, time
import nox
sys.path.insert(0, {str(ROOT)!r})
from tools.stopwatch import Stopwatch
STOPWATCH = Stopwatch({{"slow": 1}})
atexit.register(STOPWATCH.report, pathlib.Path("times.txt"))

@nox.session(venv_backend="none")
def slow(session):
    with STOPWATCH.step("slow", "sleep"):
        time.sleep(1.2)
"""


def test_a_session_that_exceeds_a_planted_budget_says_so_and_passes(tmp_path):
    (tmp_path / "noxfile.py").write_text(PLANTED, "utf-8")
    command = [sys.executable, "-m", "nox", "-s", "slow"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "OVER BUDGET, which fails nothing" in result.stdout
    assert "slow took " in result.stdout


def test_every_session_declares_its_budget():
    declared = {item.name: item.budget for item in [*noxfile.DEFAULT, *noxfile.SLOW]}
    declared |= {f"build {name}": package.budget.get("build", 0) for name, package in noxfile.PACKAGES.items()}
    assert {name: seconds for name, seconds in declared.items() if type(seconds) is not int or seconds <= 0} == {}


@pytest.mark.parametrize(
    ("alone", "lanes", "seconds"),
    [
        ((), (), 35),
        ((), (50,), 85),
        ((), (50, 20), 85),
        ((), (50, 40, 30), 105),
        ((), (30, 40, 50, 45), 120),
        ((20,), (50,), 85),  # beside the wheels
        ((60,), (50, 10), 85),  # goes on beside the first lane
        ((30, 20), (50, 40), 90),
    ],
)
def test_wheels_come_before_sessions_that_need_them_and_two_run_at_a_time(alone, lanes, seconds):
    found = {name: replace(read_package(noxfile.PACKAGES[name].folder), budget={"build": build})
             for name, build in {"openreg-runtime": 30, "openreg-amp": 5}.items()}  # fmt: skip
    sessions = [Session(str(budget), budget=budget) for budget in alone]
    sessions += [Session(str(budget), ("openreg-amp",), budget=budget) for budget in lanes]
    assert budgets.expected(sessions, found) == seconds


def test_fourteen_packages_leave_the_run_within_its_limit(tmp_path):
    stubs = tmp_path / "templates"
    stubs.mkdir()
    (stubs / "package").symlink_to(ROOT / "templates" / "package", target_is_directory=True)
    to_come = 14 - len(noxfile.PACKAGES)
    for number in range(to_come):
        new_package.create(tmp_path, f"openreg-stub{number}", new_package.DESCRIPTION)
    added = discover(tmp_path)
    assert len(added) == to_come
    sessions = [*noxfile.DEFAULT, *map(lane_session, added.values())]
    assert budgets.expected(sessions, {**noxfile.PACKAGES, **added}) <= budgets.LIMIT
