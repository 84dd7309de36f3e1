# SPDX-License-Identifier: BSD-3-Clause
"""Sessions run two at a time, within their budgets, and refuse what they do not know."""

import json
import sys
from dataclasses import replace

import pytest
from helpers import run

import noxfile
from tools import budgets, new_package, stopwatch
from tools.affected import Session, lane_session
from tools.packages import ROOT, discover, read_package
from tools.stopwatch import Stopwatch


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        ((), 2),
        (("--non-interactive",), 2),
        (("--non-interactive", "--", "-k", "add"), 2),
        (("-s", "lint"), 1),
        (("--session=lint",), 1),
        (("-l",), 1),
        (("--parallel", "1"), 1),
    ],
)
def test_all_sessions_run_two_at_a_time_and_a_named_one_alone(arguments, number):
    assert budgets.jobs(arguments, 16) == number
    assert budgets.jobs(arguments, 1) == 1


def test_where_sessions_run_beside_each_other_the_wheels_come_first_and_exactly_what_has_packages_waits_for_them():
    program = (
        "import json, nox, noxfile; functions = nox.registry.get(); print(json.dumps([nox.options.sessions, "
        "{name: functions[name].requires for name in functions if functions[name].allow_parallel}]))"
    )
    result = run(sys.executable, "-c", program, "--parallel-worker", cwd=ROOT)
    assert result.returncode == 0, result.stderr
    order, needs = json.loads(result.stdout)
    assert order == ["wheels", *(item.name for item in budgets.in_order(noxfile.DEFAULT))]
    assert needs == {"wheels": [], **{item.name: ["wheels"] * bool(item.packages) for item in noxfile.DEFAULT}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("affected -- nonsense", "affected: 'nonsense' and HEAD have no commit in common"),
        ("affected", "usage: nox -s affected -- REVISION"),
        ("release -- v999", "the tag v999 does not fit"),
        ("torch -- 2.12", "choose one of 2.13"),
        ("subsets -- ops+amp", "no subset is called 'ops+amp'; there are: runtime,"),
    ],
)
def test_a_session_refuses_what_it_does_not_know_with_exit_status_2(arguments, said):
    nox = (sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "--no-venv", "-s")
    result = run(*nox, *arguments.split())
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


def test_failed_steps_count_and_a_session_beside_others_writes_a_file_of_its_own(clock, tmp_path, capsys):
    watch = measured(clock, 0, 0, 7, 7, steps=("install",))
    clock.append(12)
    with pytest.raises(RuntimeError), watch.step("lint", "pytest"):
        raise RuntimeError
    watch.report(tmp_path / "times.txt", parallel=True)
    assert OVER in capsys.readouterr().out
    assert OVER in (tmp_path / "times-lint.txt").read_text("utf-8")
    assert not (tmp_path / "times.txt").exists()


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
