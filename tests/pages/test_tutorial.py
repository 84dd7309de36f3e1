# SPDX-License-Identifier: BSD-3-Clause
"""The tutorial's layers give each step's project, and its pages show all files and say how to check them."""

import re
import shutil
import sys
from itertools import pairwise

import pytest
from helpers import replace, run

from tools.packages import ROOT, read_toml
from tools.tutorial import (
    DOCTOR,
    PLACE,
    STEPS,
    TutorialError,
    check_output,
    commands_of,
    files_of,
    last_change,
    lay,
    layer_of,
    layer_problems,
    page_problems,
    run_command,
)


def tutorial(*arguments, root=ROOT):
    """The result of the command."""
    return run(sys.executable, "-m", "tools.tutorial", *map(str, arguments), cwd=root)


def test_all_layers_give_the_last_step_and_no_layer_has_a_file_that_its_step_does_not_change():
    assert layer_problems() == []
    assert files_of(STEPS[-1]) == layer_of(STEPS[-1])
    assert all(set(files_of(step)) < set(files_of(after)) for step, after in pairwise(STEPS))


@pytest.mark.parametrize("step", STEPS)
def test_a_project_has_each_file_of_the_layers_in_its_newest_form(step):
    project = files_of(step)
    assert set(project) == {file for number in STEPS[:step] for file in layer_of(number)}
    for file, content in project.items():
        assert content == (ROOT / f"{PLACE}{last_change(file, step)}" / file).read_bytes()


@pytest.mark.parametrize("step", STEPS[1:])
def test_a_project_has_the_sources_that_it_builds(step):
    project = files_of(step)
    assert "file(GLOB sources CONFIGURE_DEPENDS csrc/*.cpp)" in project["CMakeLists.txt"].decode()
    built = {file for file in project if re.fullmatch(r"csrc/\w+\.cpp", file)}
    assert built == {file for file in project if file.endswith(".cpp")}
    included = re.findall(r'#include "(\w+\.h)"', "".join(project[file].decode() for file in built))
    assert {f"csrc/{name}" for name in included} == {file for file in project if file.endswith(".h")}


@pytest.mark.parametrize("name", ["new/pocket", "."])
def test_the_command_writes_a_project_into_a_new_folder_or_an_empty_one(name, tmp_path):
    folder = tmp_path / name
    done = tutorial("lay", folder, 5)
    assert (done.returncode, done.stderr) == (0, "")
    assert "docs/tutorial/step5.md" in done.stdout
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.relative_to(folder).as_posix(): path.read_bytes() for path in written} == files_of(5)


def test_a_folder_with_files_and_a_file_are_refused_and_stay_as_they_are(tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine", "utf-8")
    for folder in (tmp_path, mine):
        done = tutorial("lay", folder, 2)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"tutorial: {folder} is not an empty folder; name a new one\n"
    assert list(tmp_path.iterdir()) == [mine]
    assert mine.read_text("utf-8") == "mine"


def test_a_step_without_a_layer_below_it_is_refused(checkout, tmp_path):
    shutil.rmtree(checkout / f"{PLACE}3")
    lay(2, tmp_path / "two", checkout)
    done = tutorial("lay", tmp_path / "five", 5, root=checkout)
    assert (done.returncode, done.stdout) == (2, "")
    said = "step 5 needs the files of examples/tutorial/step3, which is missing or empty; use a complete checkout"
    assert done.stderr == f"tutorial: {said}\n"
    assert not (tmp_path / "five").exists()


@pytest.mark.parametrize("arguments", [(), ("lay",), ("lay", "x"), ("lay", "x", "10"), ("check",), ("check", "x", "0")])
def test_a_command_without_a_folder_or_with_an_unknown_step_is_refused(arguments, tmp_path):
    done = tutorial(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: python -m tools.tutorial lay FOLDER STEP" in done.stderr
    assert "numbers from 1 to 9" in done.stderr


def test_a_file_that_a_layer_has_without_a_change_is_found(checkout):
    file = "csrc/copy.cpp"
    shutil.copyfile(checkout / f"{PLACE}3" / file, checkout / f"{PLACE}4" / file)
    assert layer_problems(checkout) == ["step 4 does not change csrc/copy.cpp: delete it there"]


def test_a_file_that_the_last_step_lacks_is_found(checkout):
    (checkout / f"{PLACE}9" / "csrc" / "copy.cpp").unlink()
    assert layer_problems(checkout) == ["step 9 is whole, and lacks csrc/copy.cpp"]


def test_the_wheel_that_contains_the_layers_has_of_the_last_one_only_what_it_changes():
    wheel = read_toml(ROOT / "packages/openreg-doctor/pyproject.toml")["tool"]["scikit-build"]["wheel"]
    assert wheel["force-include"] == {"tutorial": "openreg_doctor/tutorial"}
    last = STEPS[-1]
    assert f"openreg_doctor/tutorial/step{last}/**" in wheel["exclude"]
    kept = [name for name in wheel["exclude"] if name.startswith("!")]
    before = files_of(last - 1)
    changed = {file for file, content in layer_of(last).items() if before.get(file) != content}
    assert {name.removeprefix(f"!openreg_doctor/tutorial/step{last}/") for name in kept} == changed


def test_a_backend_of_ones_own_begins_with_the_files_of_its_step(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packages/openreg-doctor/src")
    from openreg_doctor.projects import files

    for step in range(files.FIRST, files.LAST + 1):
        project = {file: content.decode() for file, content in files_of(step).items()}
        assert project.items() <= files.templates(step).items()


def test_the_pages_show_every_file_of_every_step():
    assert page_problems() == []


@pytest.mark.parametrize("step", STEPS)
def test_a_page_installs_checks_and_examines_its_step_with_commands_of_the_folder(step):
    readme = (ROOT / f"{PLACE}{step}" / "README.md").read_text("utf-8")
    lines = readme.splitlines()
    (install_and_check, _), (doctor, report), *others = commands_of(step)
    assert install_and_check == ["pip install --no-build-isolation --no-deps .", "python check.py"]
    assert doctor[0].startswith(f"{DOCTOR} --import torch_pocket")
    assert re.search(r"(?m)^pocket: (\d+ problems?|no problem) found", report)
    assert {*install_and_check, *doctor, *(line for commands, _ in others for line in commands)} <= set(lines)
    assert (f"python -m tools.tutorial lay ../pocket {step}" in lines) == (step != STEPS[-1])
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
        ("docs/tutorial/step6.md", 'step3/csrc/copy.cpp")]', 'step2/csrc/copy.cpp")]', "step 6 does not show csrc"),
        ("docs/tutorial/step5.md", "step2/src/", "step1/src/", "step 5 does not show src/torch_pocket/__init__.py"),
        ("examples/tutorial/step6/csrc/guard.cpp", "", "// more\n", "step 9 does not show csrc/guard.cpp"),
    ],
)
def test_what_no_page_shows_is_found(checkout, file, old, new, found):
    replace(checkout / file, old, new)
    assert page_problems(checkout)[0].startswith(found)


def test_another_output_of_a_command_is_found_out():
    (_, shown), _ = commands_of(2)
    check_output(2, "python check.py", shown, shown)
    with pytest.raises(TutorialError, match=r"and `python check[.]py` printed"):
        check_output(2, "python check.py", shown, shown.replace("two devices", "three devices"))


def test_what_a_page_leaves_out_may_be_anything_and_the_rest_not():
    shown = "Problems\n    PROBLEM  a\n        ...\n    PROBLEM  b\n...\npocket: 2 problems found\n"
    printed = "Problems\n    PROBLEM  a\n        fix: it\n    PROBLEM  b\n\nEnvironment\npocket: 2 problems found\n"
    check_output(3, DOCTOR, shown, printed)
    for other in (printed.replace("PROBLEM  b", "PROBLEM  c"), printed.replace("2 problems", "3 problems")):
        with pytest.raises(TutorialError, match="step 3: the page shows"):
            check_output(3, DOCTOR, shown, other)


@pytest.mark.parametrize(
    ("command", "status", "fails"),
    [("check.py", 0, False), ("check.py", 1, True), ("-m openreg_doctor", 1, False), ("-m openreg_doctor", 2, True)],
)
def test_a_command_that_fails_is_found_out_and_a_problem_that_the_doctor_reports_is_none(
    command, status, fails, tmp_path
):
    for file in ("check.py", "openreg_doctor.py"):
        (tmp_path / file).write_text(f"print('done')\nraise SystemExit({status})\n", "utf-8")
    if not fails:
        assert run_command(4, f"python {command}", tmp_path) == "done\n"
        return
    with pytest.raises(TutorialError, match=f"step 4: python {re.escape(command)} ended with {status}\ndone"):
        run_command(4, f"python {command}", tmp_path)


def test_a_block_of_commands_without_output_is_not_run(checkout):
    page = checkout / "docs" / "tutorial" / "step2.md"
    blocks = commands_of(2, checkout)
    page.write_text(page.read_text("utf-8") + "\n```console\npython more.py\n```\n\n## More\n", "utf-8")
    assert commands_of(2, checkout) == blocks
