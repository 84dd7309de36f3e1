# SPDX-License-Identifier: BSD-3-Clause
"""The operators of each kind fit into the tutorial's project, and their page and folder show the same commands."""

import sys

import pytest
from helpers import run

from tools.packages import ROOT
from tools.tutorial import STEPS, TutorialError, files_of
from tools.tutorial_operators import FILES, FIRST_STEP, FOLDER, PAGE, commands_of, project_of


def command(*arguments):
    """The result of the command."""
    return run(sys.executable, "-m", "tools.tutorial_operators", *map(str, arguments), cwd=ROOT)


@pytest.mark.parametrize("step", STEPS[FIRST_STEP - 1 :])
def test_a_project_is_that_of_its_step_with_the_operators_and_builds_them(step):
    project, without = project_of(step), files_of(step)
    assert {file for file in project if project[file] != without.get(file)} == set(FILES)
    assert "csrc/*.cpp" in project["CMakeLists.txt"].decode()


def test_the_command_writes_a_project_into_a_new_folder_and_refuses_a_used_one(tmp_path):
    done = command("lay", tmp_path / "four", 4)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"docs/operators/{PAGE.name}" in done.stdout
    written = [path for path in (tmp_path / "four").rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "four").as_posix(): path.read_bytes() for path in written} == project_of(4)
    done = command("lay", tmp_path / "four", 4)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not an empty folder" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("lay", "x"), ("lay", "x", "3"), ("check",), ("check", "x", "4")])
def test_a_command_without_a_folder_or_with_another_step_is_refused(arguments):
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "numbers from 4 to 9" in done.stderr


def test_the_folder_shows_the_commands_of_the_page():
    commands, _ = commands_of(PAGE.read_text("utf-8"))
    lines = (FOLDER / "README.md").read_text("utf-8").splitlines()
    assert commands == ["pip install --no-build-isolation --no-deps .", "python check.py"]
    assert set(commands) < set(lines)
    assert "python -m tools.tutorial_operators lay ../pocket 4" in lines


def test_a_page_without_output_is_refused():
    with pytest.raises(TutorialError, match=r"does not show the output of `python check.py`"):
        commands_of("```console\npython check.py\n```\n")
