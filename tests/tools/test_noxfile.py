# SPDX-License-Identifier: BSD-3-Clause
"""Nox sessions run two at a time, after those that they need, and refuse unknown arguments and a second run."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from filelock import FileLock
from helpers import run

import noxfile
from tools._platform import usable_cores
from tools.packages import ROOT
from tools.pages import trace
from tools.sessions import stopwatch
from tools.sessions.lock import VARIABLE
from tools.sessions.stopwatch import Stopwatch
from tools.systems import native_driver

PROGRAM = """
import json, nox, noxfile
functions = nox.registry.get()
needs = {name: functions[name].requires for name in functions if functions[name].allow_parallel}
print(json.dumps([noxfile.JOBS, nox.options.sessions, needs]))
"""


def asked(*arguments):
    """How many sessions run at a time with these arguments of nox, which ones, and what waits for what."""
    result = run(sys.executable, "-c", PROGRAM, *arguments, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("arguments", [(), ("--non-interactive", "--", "-k", "add")])
def test_all_sessions_run_two_at_a_time_where_there_are_two_cores(arguments):
    jobs, *_ = asked(*arguments)
    assert jobs == min(2, usable_cores())


@pytest.mark.parametrize("arguments", [("-s", "lint"), ("--session=lint",), ("-l",), ("--parallel", "1")])
def test_a_named_session_runs_alone(arguments):
    jobs, sessions, _ = asked(*arguments)
    assert (jobs, sessions) == (1, noxfile.DEFAULT)


def test_where_sessions_run_beside_each_other_exactly_what_installs_packages_waits_for_the_wheels():
    _, order, needs = asked("--parallel-worker")
    assert order == ["wheels", *noxfile.DEFAULT]
    alone = {"wheels", "lint", "tsan", "asan"}
    assert needs == {name: [] if name in alone else ["wheels"] for name in order}


def test_every_package_has_a_session_and_every_session_of_a_list_exists():
    listed = run(sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "--list").stdout
    assert {f"test-{name}" for name in noxfile.PACKAGES} < set(noxfile.DEFAULT)
    for name in (*noxfile.DEFAULT, *noxfile.SLOW):
        assert f" {name} " in listed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
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


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the stopwatch reads, one after the other."""
    readings = []
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: readings.pop(0) if len(readings) > 1 else readings[0])
    monkeypatch.setattr(stopwatch, "processor_seconds", lambda: 0.0)
    return readings


def test_failed_steps_count_and_a_session_beside_others_writes_a_file_of_its_own(clock, tmp_path, capsys):
    clock += [0, 0, 7, 7, 12]
    watch = Stopwatch()
    with watch.step("lint", "install"):
        pass
    with pytest.raises(RuntimeError), watch.step("lint", "pytest"):
        raise RuntimeError
    watch.report(tmp_path / "deep" / "times.txt", parallel=True)
    written = (tmp_path / "deep" / "times-lint.txt").read_text("utf-8")
    assert [line.split()[1:3] for line in written.splitlines()[1:-1]] == [["install", "7.0"], ["pytest", "5.0"]]
    assert written in capsys.readouterr().out
    assert not (tmp_path / "deep" / "times.txt").exists()


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


@pytest.fixture
def occupied(tmp_path, monkeypatch):
    """A session of nox in whose folder another run works; it fails the test with all that it is asked to do."""
    monkeypatch.setenv(VARIABLE, "")
    with FileLock(tmp_path / "lock"):
        yield SimpleNamespace(name="lint", cache_dir=tmp_path, posargs=[])


BUILDS = {
    "interfaces": lambda session: noxfile.run_interfaces(session, noxfile.WHEELHOUSE),
    "wheels": lambda session: noxfile.WHEELHOUSE.provide(session, ["openreg-ops"]),
    "torch": lambda session: noxfile.run_torch_sessions(session, [], Stopwatch()),
    "cross": lambda session: native_driver.cross_compile(session, Stopwatch()),
    "emulated": lambda session: native_driver.run_emulated(session, Stopwatch()),
    "asan": lambda session: native_driver.run_sanitizer(session, Stopwatch(), "address"),
    "tidy": lambda session: native_driver.run_tidy(session, Stopwatch()),
    "macos": lambda session: noxfile.build_for_macos(session, noxfile.PACKAGES, Stopwatch()),
}


@pytest.mark.parametrize("name", BUILDS)
def test_whatever_builds_is_refused_beside_another_run_before_it_does_anything(occupied, monkeypatch, capsys, name):
    monkeypatch.setattr(native_driver, "missing", lambda _: "")
    with pytest.raises(SystemExit, match="2"):
        BUILDS[name](occupied)
    assert f"another run works in {occupied.cache_dir}" in capsys.readouterr().err


@pytest.mark.skipif(usable_cores() < 2, reason="sessions run one after the other on one core, and each asks for itself")
def test_only_nox_itself_asks_for_the_folder_when_it_reads_the_noxfile(checkout):
    with FileLock(folder := checkout / ".nox" / ".cache" / "lock"):
        imported = run(sys.executable, "-c", "import noxfile; print(noxfile.PARALLEL)", cwd=checkout, **{VARIABLE: ""})
        started = run(sys.executable, "-m", "nox", "--no-venv", "--", "--version", cwd=checkout, **{VARIABLE: ""})
    assert imported.stdout == "True\n", imported.stderr
    assert started.returncode == 2
    assert f"another run works in {folder.parent}" in started.stderr


@pytest.mark.parametrize(("posargs", "success"), [([], {0}), (["-k", "matmul"], {0, 5})])
def test_chosen_tests_that_one_package_does_not_have_pass_there(monkeypatch, posargs, success):
    """5 is what pytest ends with if it finds no test."""
    here = Mock()
    monkeypatch.setattr(noxfile, "package_session", lambda _: here)
    noxfile.settings.func(SimpleNamespace(posargs=posargs))
    assert here.run.call_count == 2 * len(noxfile.COMPARED_WITH_THE_CPU)
    for call in here.run.call_args_list:
        assert set(call.kwargs["success_codes"]) == success


class CompiledError(Exception):
    """What runs in the build environment of these tests."""


@pytest.fixture
def house(monkeypatch):
    """A build environment that may lack the runtime, as it does after it was made anew while all wheels were there."""
    house = Mock(packages=noxfile.PACKAGES)
    monkeypatch.setattr(noxfile, "WHEELHOUSE", house)
    monkeypatch.setattr(noxfile, "package_session", lambda _: Mock(run=Mock(side_effect=CompiledError)))
    monkeypatch.setattr(trace, "require_valgrind", lambda: None)
    house.run_python.side_effect = CompiledError
    return house


@pytest.mark.parametrize("compiles", [noxfile.trace, noxfile.bench], ids=["trace", "bench"])
def test_what_compiles_by_itself_installs_the_runtime_before(house, tmp_path, compiles):
    session = Mock(posargs=["--build-time"], create_tmp=lambda: str(tmp_path))
    with pytest.raises(CompiledError):
        compiles.func(session)
    (call,) = house.install.call_args_list
    assert call.args[1].name == "openreg-runtime"


LOCKED = """
import sys
from pathlib import Path
from tools.sessions.lock import lock
lock(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_run_beside_one_that_works_is_refused(tmp_path):
    command = [sys.executable, "-c", LOCKED, str(tmp_path)]
    variables = {VARIABLE: ""}
    first = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout.readline() == "locked\n"
        second = run(*command, cwd=ROOT, **variables)
        assert second.returncode == 2
        assert f"another run works in {tmp_path} (process {first.pid}); wait until it has ended" in second.stderr
        within = subprocess.run(
            command, cwd=ROOT, env={**os.environ, VARIABLE: str(tmp_path)}, input="", text=True, check=False
        )
        assert within.returncode == 0
    finally:
        first.communicate("")
    again = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, input="", text=True, check=False)
    assert again.returncode == 0
