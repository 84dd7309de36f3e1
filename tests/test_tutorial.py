# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the tutorial show the projects in examples/tutorial, all of them and nothing else.

`nox -s tutorial` also installs what a reader gets, and runs its checks.
"""

import difflib
import re
import shutil

import pytest

from tools.packages import ROOT
from tools.tutorial import (
    STEPS,
    TutorialError,
    apply_difference,
    check_output,
    commands_of,
    files_of,
    follow_all,
    page_of,
)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_made_from_the_pages_is_the_folder_of_the_step(step):
    assert follow_all()[step] == files_of(step)


@pytest.mark.parametrize("step", STEPS)
def test_a_page_ends_with_the_commands_of_its_folder(step):
    readme = (ROOT / "examples" / "tutorial" / f"step{step}" / "README.md").read_text("utf-8")
    assert commands_of(step)[-1] == "python check.py"
    assert all(line in readme.splitlines() for line in commands_of(step))
    assert f"](../../../docs/tutorial/step{step}.md)" in readme


def test_the_first_step_is_python_of_at_most_a_hundred_lines():
    files = [name for name in files_of(1) if name.endswith((".py", ".cpp", ".h")) and name != "check.py"]
    assert files == ["src/torch_pocket/__init__.py"]
    path = ROOT / "examples" / "tutorial" / "step1" / files[0]
    assert len(path.read_text("utf-8").splitlines()) <= 100


def test_the_last_step_has_every_part():
    assert {
        *("csrc/allocator.cpp", "csrc/guard.cpp", "csrc/hooks.cpp", "csrc/queue.cpp", "csrc/generator.cpp"),
        *("csrc/tensors.cpp", "csrc/structured.cpp", "csrc/stub.cpp", "csrc/fallback.cpp", "csrc/cube.cpp"),
        *("csrc/autocast.cpp", "src/torch_pocket/operators.py", "src/torch_pocket/pocket.py"),
    } <= set(files_of(7))
    assert "torch.backends" in files_of(7)["pyproject.toml"]


@pytest.fixture
def copy(tmp_path):
    """The tutorial's pages and projects, to be changed."""
    for folder in ("docs/tutorial", "examples/tutorial"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    return tmp_path


def test_a_file_that_no_page_shows_is_found_out(copy):
    (copy / "examples/tutorial/step4/csrc/forgotten.cpp").write_text("// nothing\n")
    assert follow_all(copy)[4] != files_of(4, copy)


def test_a_change_of_what_a_page_shows_is_found_out(copy):
    page = copy / "docs/tutorial/step7.md"
    text = page.read_text("utf-8")
    assert "TORCH_LIBRARY_IMPL(" in text
    page.write_text(text.replace("TORCH_LIBRARY_IMPL(", "TORCH_LIBRARY_FRAGMENT(", 1), "utf-8")
    assert follow_all(copy)[7] != files_of(7, copy)


def test_comments_of_a_page_are_not_read(copy):
    for page in (copy / "docs/tutorial").glob("step*.md"):
        page.write_text(re.sub("(?m)^<!--.*-->$", "", page.read_text("utf-8")), "utf-8")
    assert follow_all(copy) == {step: files_of(step) for step in STEPS}


def test_a_change_that_no_page_shows_is_found_out(copy):
    path = copy / "examples/tutorial/step5/csrc/relu.cpp"
    path.write_text(path.read_text("utf-8") + "// more\n")
    assert follow_all(copy)[5] != files_of(5, copy)


def test_a_change_of_a_file_that_was_never_shown_is_found_out(copy):
    page = copy / "docs/tutorial/step2.md"
    title = "[`examples/tutorial/step2/CMakeLists.txt`]"
    assert title in page.read_text("utf-8")
    page.write_text(page.read_text("utf-8").replace(title, f"From {title}"), "utf-8")
    with pytest.raises(TutorialError, match=r"step 3 shows how CMakeLists\.txt changes, and no step before"):
        follow_all(copy)


def test_a_difference_from_another_text_does_not_fit():
    old = "".join(f"{number}\n" for number in range(20)) + "\nend\n"
    new = old.replace("5\n", "five\n", 1).replace("17\n", "") + "more\n"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="")
    difference = "\n".join(line.rstrip() for line in list(lines)[2:])
    assert apply_difference("first\n" + old, difference) == "first\n" + new
    with pytest.raises(TutorialError, match="does not fit"):
        apply_difference(old.replace("6\n", "six\n", 1), difference)


def test_another_output_of_a_check_is_found_out():
    shown = page_of(2).split("```text\n")[-1].split("```")[0]
    check_output(2, shown)
    with pytest.raises(TutorialError, match="the check printed"):
        check_output(2, shown.replace("two devices", "three devices"))
