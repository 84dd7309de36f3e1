# SPDX-License-Identifier: BSD-3-Clause
"""The option --sanitize of openreg-testing: the test that made the finding fails, and no other."""

import os
import subprocess
import sys

import pytest
from _platform import HAS_FORK

WORK = """
import torch
import openreg_ops
import openreg_sanitizer

def work(fixed):
    side = torch.openreg.Stream()
    x = torch.ones(1024, device="openreg")
    side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        x.mul_(2)
    if fixed:
        torch.openreg.current_stream().wait_stream(side)
    y = x + 1
    torch.openreg.synchronize()
    return y
"""
TESTS = (
    WORK
    + """
def test_wrong():
    work(False)

def test_right():
    work(True)

def test_wrong_again():
    work(False)
"""
)
CAUSES = (
    TESTS
    + """
def test_wrong_in_another_way():
    work(False)
    x = torch.empty(1024, device="openreg")
    x.add_(1)
    torch.openreg.synchronize()

def test_wrong_for_another_reason():
    work(False)
    raise KeyError
"""
)
CAUSE = "race: test_streams.py:14 needs torch.openreg.current_stream().wait_stream(side) before it"


def run(folder, *options, tests=TESTS):
    (folder / "test_streams.py").write_text(tests, "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "none.ini",
        "--rootdir",
        str(folder),
    ]
    (folder / "none.ini").write_text("[pytest]\n", "utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH_", "OPENREG_", "PYTEST_"))}
    env = {**kept, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "COLUMNS": "300"}
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, cwd=folder, timeout=240, env=env, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_test_with_a_finding_fails(tmp_path):
    status, output = run(tmp_path, "--device", "openreg", "--openreg-sanitize")
    assert status == 1, output
    assert "2 failed, 1 passed" in output
    assert output.count("openreg-sanitizer: race:") >= 2
    assert "missing: torch.openreg.current_stream().wait_stream(side)" in output
    assert "first: test_streams.py:11  x.mul_(2)" in output


FAILING = (
    WORK
    + """
def test_wrong():
    work(False)
    raise AssertionError("the result is wrong")
"""
)


def test_a_test_that_fails_anyway_shows_its_finding(tmp_path):
    status, output = run(tmp_path, "--device", "openreg", "--sanitize", tests=FAILING)
    assert status == 1
    assert "FAILED test_streams.py::test_wrong - openreg-sanitizer: AssertionError: the" in output
    assert "missing: torch.openreg.current_stream().wait_stream(side)" in output


ISOLATED = (
    WORK
    + """
import pytest

@pytest.mark.schedules(seeds=2)
@pytest.mark.parametrize("fixed", [True, False])
def test_seeds(fixed):
    work(fixed)
"""
)


@pytest.mark.skipif(not HAS_FORK, reason="the workers here are forked")
def test_processes_of_isolated_tests_are_forked_and_find_races(tmp_path):
    status, output = run(tmp_path, "--device", "openreg", "--sanitize", tests=ISOLATED)
    assert status == 1
    assert "1 failed, 1 passed" in output
    assert f"\n{CAUSE}\n\nopenreg-sanitizer: race:" in output
    assert "are started, not forked" not in output
    assert "not checked" not in output


@pytest.fixture(scope="module")
def causes(tmp_path_factory):
    """The output of tests with several findings."""
    return run(tmp_path_factory.mktemp("causes"), "--device", "openreg", "--sanitize", tests=CAUSES)[1]


def test_a_failure_begins_with_kind_and_line(causes):
    assert f"\n{CAUSE}\n\nopenreg-sanitizer: race:" in causes
    assert f"FAILED test_streams.py::test_wrong - Failed: {CAUSE}\n" in causes
    assert f"FAILED test_streams.py::test_wrong_in_another_way - Failed: {CAUSE} (and 1 more)\n" in causes


def test_the_summary_groups_the_findings_of_all_tests(causes):
    """Those of a test that fails for another reason, too."""
    begin = causes.index("1 missing line, found by --sanitize in 4 tests:\n")
    assert ", with the fills of --sanitize)\n" in causes[:begin]
    assert causes[begin:].splitlines()[1:4] == [
        f"  {CAUSE}, in 4 tests",
        "1 wrong access, found by --sanitize in 1 test:",
        "  uninitialized: test_streams.py:30: memory is read that nothing has written, in 1 test",
    ]


def test_stacks_begin_with_the_test(causes):
    assert "access (innermost last):\n    test_streams.py:25 in test_wrong_again  work(False)\n" in causes
    assert "in pytest_pyfunc_call" not in causes


def test_stacks_are_whole_with_an_option_of_pytest(tmp_path):
    output = run(tmp_path, "--device", "openreg", "--sanitize", "--full-trace", "-k", "wrong")[1]
    assert "in pytest_pyfunc_call" in output


def test_without_the_option_nothing_fails(tmp_path):
    status, output = run(tmp_path, "--device", "openreg")
    assert status == 0, output
    assert "fills" not in output
    assert "not checked: waits between streams" in output


def test_another_device_is_refused(tmp_path):
    status, output = run(tmp_path, "--device", "cpu", "--sanitize")
    assert status == 4
    assert "--sanitize" in output
