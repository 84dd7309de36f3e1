# SPDX-License-Identifier: BSD-3-Clause
"""The tutorial's pages show all files of each step, and say how to install and check it."""

import pytest
from helpers import replace

from tools.packages import ROOT
from tools.tutorial import STEPS, TutorialError, check_output, commands_of, files_of, page_of, problems


def test_the_pages_show_every_file_of_every_step():
    assert problems() == []
    assert len(files_of(8)) > len(files_of(1)) > 2


@pytest.mark.parametrize("step", STEPS)
def test_a_page_ends_with_the_commands_of_its_folder(step):
    readme = (ROOT / "examples" / "tutorial" / f"step{step}" / "README.md").read_text("utf-8")
    assert commands_of(step)[-1] == "python check.py"
    assert all(line in readme.splitlines() for line in commands_of(step))
    assert f"](../../../docs/tutorial/step{step}.md)" in readme


def test_the_first_step_is_python_of_at_most_a_hundred_lines():
    (file,) = (name for name in files_of(1) if name.endswith((".py", ".cpp", ".h")) and name != "check.py")
    assert len(files_of(1)[file].splitlines()) <= 101  # with that of the license


@pytest.mark.parametrize(
    ("file", "old", "new", "found"),
    [
        ("examples/tutorial/step4/csrc/forgotten.cpp", "", "// nothing\n", "step 4 does not show csrc/forgotten.cpp"),
        ("examples/tutorial/step5/csrc/guard.cpp", "", "// more\n", "step 5 does not show csrc/guard.cpp"),
        ("docs/tutorial/step2.md", 'Lists.txt")]', 'Lists.txt", first="p")]', "step 2 does not show CMakeLists.txt"),
        ("docs/tutorial/step3.md", 'step2/CMakeLists.txt")]', 'step1/CMakeLists.txt")]', "step 3 does not show CMake"),
    ],
)
def test_what_no_page_shows_is_found(checkout, file, old, new, found):
    replace(checkout / file, old, new)
    assert problems(checkout)[0].startswith(found)


def test_another_output_of_a_check_is_found_out():
    shown = page_of(2).split("```text\n")[-1].split("```")[0]
    check_output(2, shown)
    with pytest.raises(TutorialError, match="the check printed"):
        check_output(2, shown.replace("two devices", "three devices"))
