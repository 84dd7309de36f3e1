# SPDX-License-Identifier: BSD-3-Clause
"""`new` writes a complete project under the user's names, and refuses what cannot become one.

That such a project builds, and passes its own tests, is shown by `nox -s tutorial`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import PurePosixPath

import pytest

from openreg_doctor.launch import run
from openreg_doctor.projects import command, files, names
from openreg_doctor.projects.names import Names, ProjectError

NAMES = [Names("torch-aurora", "aurora"), Names("borealis_backend", "borealis"), Names("Acme.npu", "acme_npu")]
STEPS = range(files.FIRST, files.LAST + 1)


@pytest.fixture
def without_torch(monkeypatch):
    """Saves the seconds in which a process imports torch to ask it about a name."""
    monkeypatch.setattr(names, "check_with_torch", lambda device: "")
    monkeypatch.setattr(command, "version", lambda distribution: f"{pinned_torch()}.0")


def pinned_torch():
    """The release of torch that projects are for, such as "2.13"."""
    return re.search(r'"torch==(.+)\.\*"', files.templates(files.LAST)["pyproject.toml"]).group(1)


def new(*arguments):
    return run(["new", *map(str, arguments)], "python -m openreg_doctor")


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_tutorials_names_become_the_users():
    text = 'torch-pocket torch_pocket "pocket" pocketMalloc POCKET_LAUNCH_BLOCKING PocketOps pccl'
    assert NAMES[2].substituted(text) == (
        'Acme.npu acme_npu "acme_npu" acme_npuMalloc ACME_NPU_LAUNCH_BLOCKING AcmeNpuOps acme_npu_ccl'
    )


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("chosen", NAMES, ids=lambda chosen: chosen.package)
def test_a_project_has_every_file_of_its_step_and_no_trace_of_the_tutorials_names(chosen, step):
    templates, project = files.templates(step), files.make(chosen, step)
    assert len(project.files) == len(templates)
    for path, text in {**project.files, files.RECORD: files.record_of(project)}.items():
        assert not re.search("pocket|pccl", f"{path}\n{text}", re.IGNORECASE), path
    assert set(project.files) == {chosen.substituted(path) for path in templates}
    assert f"src/{chosen.module}/{chosen.device}.py" in project.files


@pytest.mark.parametrize("step", STEPS)
def test_a_project_builds_the_sources_that_it_has(step):
    project = files.make(NAMES[0], step).files
    (pattern,) = re.findall(r"GLOB sources CONFIGURE_DEPENDS (\S+)\)", project["CMakeLists.txt"])
    built = {path for path in project if PurePosixPath(path).match(pattern)}
    assert built == {path for path in project if path.endswith(".cpp")}
    included = re.findall(r'#include "(\w+\.h)"', "".join(project[path] for path in built))
    assert {f"csrc/{name}" for name in included} == {path for path in project if path.endswith(".h")}
    assert 'name = "torch-aurora"' in project["pyproject.toml"]


@pytest.mark.parametrize("step", STEPS)
def test_the_readme_of_a_project_names_files_that_it_has(step):
    project = files.make(NAMES[0], step).files
    named = re.findall(r"`((?:csrc|src|tests|\.github)[\w./-]*|check\.py|CMakeLists\.txt)`", project["README.md"])
    folders = {path.partition("/")[0] for path in project}
    assert len(named) > 10
    assert [name for name in named if name not in {*project, *folders, files.RECORD}] == []


def test_a_project_has_the_known_failures_of_its_own_step():
    for name in ("tests/conformance.toml", "tests/doctor.txt"):
        lists = {step: files.templates(step)[name] for step in STEPS}
        assert lists[3] == lists[5]
        assert lists[7] == lists[9]
        assert len({lists[5], lists[6], lists[7]}) == 3
    assert not any("known_failures" in path for step in STEPS for path in files.templates(step))


def test_what_systems_leave_in_the_folders_of_the_tutorial_is_no_part_of_a_project(tmp_path, monkeypatch):
    expected = files.templates(files.LAST)
    shutil.copytree(files._folder(), tmp_path / "tutorial")
    for name in (".DS_Store", "csrc/.DS_Store", "build/_C.o", "src/__pycache__/module.pyc"):
        left = tmp_path / "tutorial" / "step3" / name
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_bytes(b"\xff\x00")
    monkeypatch.setattr(files, "_folder", lambda: tmp_path / "tutorial")
    assert files.templates(files.LAST) == expected


def test_the_command_writes_the_project_and_its_record(without_torch, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert new("torch-aurora", "--device", "aurora") == 0
    folder = tmp_path / "torch-aurora"
    project = files.make(NAMES[0], files.DEFAULT)
    assert files_in(folder) == {*project.files, files.RECORD}
    assert all((folder / path).read_text("utf-8") == text for path, text in project.files.items())
    assert files.read_record(folder) == project
    printed = capsys.readouterr().out
    assert "pip install --no-build-isolation --no-deps ." in printed
    assert "python -m openreg_doctor update" in printed


def test_an_empty_folder_and_another_step_can_be_chosen(without_torch, tmp_path):
    assert new("torch-aurora", "--device", "aurora", "--step", 3, "--folder", tmp_path) == 0
    assert files_in(tmp_path) == {*files.make(NAMES[0], 3).files, files.RECORD}


def test_the_operators_of_each_kind_are_added_under_the_projects_names(without_torch, tmp_path, capsys):
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path) == 0
    before = files_in(tmp_path)
    assert run(["operators", str(tmp_path)], "python -m openreg_doctor") == 0
    added = files_in(tmp_path) - before
    assert added == {"csrc/kinds.cpp", "check_operators.py"}
    texts = {path: (tmp_path / path).read_text("utf-8") for path in added}
    assert not any("pocket" in text.lower() for text in texts.values())
    assert "namespace aurora {" in texts["csrc/kinds.cpp"]
    included = re.findall(r'#include "(\w+\.h)"', texts["csrc/kinds.cpp"])
    assert included
    assert {f"csrc/{name}" for name in included} < before
    named = re.findall(r"[\w./-]+/[\w.-]+\.(?:md|py|cpp|toml)", "".join(texts.values()))
    assert [path for path in named if path not in before] == []
    (tmp_path / "csrc/kinds.cpp").write_text("// mine\n", "utf-8")
    assert run(["operators", str(tmp_path)], "python -m openreg_doctor") == 2
    assert "kinds.cpp is there already; rename or delete it first" in capsys.readouterr().err
    assert (tmp_path / "csrc/kinds.cpp").read_text("utf-8") == "// mine\n"


def test_the_tests_of_a_project_run_the_check_of_the_added_operators(without_torch, tmp_path):
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path) == 0
    assert run(["operators", str(tmp_path)], "python -m openreg_doctor") == 0
    for name in ("check.py", "check_operators.py"):
        (tmp_path / name).write_text(f"raise SystemExit('{name} has run')", "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "pyproject.toml", "--rootdir", "."]
    tests = [*command, "tests/test_backend.py", "-k", "test_the_checks_of_the_device_pass"]
    done = subprocess.run(tests, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 failed" in done.stdout
    assert "check.py has run" in done.stdout
    assert "check_operators.py has run" in done.stdout


def test_the_operators_of_each_kind_need_the_step_that_has_their_headers(without_torch, tmp_path, capsys):
    assert new("torch-aurora", "--device", "aurora", "--step", 3, "--folder", tmp_path) == 0
    before = files_in(tmp_path)
    assert run(["operators", str(tmp_path)], "python -m openreg_doctor") == 2
    assert "the operators need step 4; update it with --step 4" in capsys.readouterr().err
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("name", ["mine.txt", "folder/mine.txt"])
def test_a_folder_with_files_stays_as_it_is(without_torch, tmp_path, name, capsys):
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine", "utf-8")
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path) == 2
    assert capsys.readouterr().err.startswith(f"new: {tmp_path} is not an empty folder")
    assert new("torch-aurora", "--device", "aurora", "--folder", mine) == 2
    assert capsys.readouterr().err.startswith(f"new: {mine} is not an empty folder")
    assert files_in(tmp_path) == {name}
    assert mine.read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        ("cuda", "is a device of PyTorch itself"),
        ("cpu", "is a device of PyTorch itself"),
        ("meta", "is a device of PyTorch itself"),
        ("privateuseone", "is a device of PyTorch itself"),
        ("Aurora", "PyTorch takes small letters"),
        ("1aurora", "PyTorch takes small letters"),
        ("npu1", "PyTorch takes small letters"),
        ("aurora:0", "PyTorch takes small letters"),
        ("_aurora", "PyTorch takes small letters"),
        ("", "PyTorch takes small letters"),
        ("class", "is a word of Python or C++"),
        ("match", "is a word of Python or C++"),
        ("namespace", "is a word of Python or C++"),
        ("linux", "is a word of Python or C++"),
        ("torch", "is a word of the project's own code"),
        ("std", "is a word of the project's own code"),
        ("allocator", "is a word of the project's own code"),
    ],
)
def test_a_device_that_cannot_have_its_name_is_refused(device, reason, tmp_path, capsys):
    folder = tmp_path / "project"
    assert new("torch-aurora", "--device", device, "--folder", folder) == 2
    assert capsys.readouterr().err.startswith(f"new: {device!r} is")
    assert not folder.exists()
    with pytest.raises(ProjectError, match=re.escape(reason)):
        names.check_device(device, files.templates(9).values())


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        ("torch aurora", "is not the name of a distribution"),
        ("-aurora", "is not the name of a distribution"),
        ("aurora-", "is not the name of a distribution"),
        ("aurorä", "is not the name of a distribution"),
        ("../aurora", "is not the name of a distribution"),
        ("", "is not the name of a distribution"),
        ("3d-aurora", "'3d_aurora' is no name in Python"),
        ("class", "'class' is no name in Python"),
        ("json", "would replace the module 'json'"),
        ("Torch", "would replace the module 'torch'"),
        ("openreg-testing", "would replace the module 'openreg_testing'"),
        ("torch-openreg", "would replace the module 'torch_openreg'"),
    ],
)
def test_a_package_that_cannot_have_its_name_is_refused(package, reason, tmp_path):
    with pytest.raises(ProjectError, match=re.escape(reason)):
        names.check_package(package)
    assert new("--device", "aurora", "--folder", tmp_path / "project", "--", package) == 2
    assert not (tmp_path / "project").exists()


@pytest.mark.parametrize(
    ("name", "user"),
    [("nn", "torch.nn"), ("backward", "Tensor.backward"), ("leaf", "Tensor.is_leaf")],
)
def test_a_name_that_torch_uses_is_refused(name, user):
    with pytest.raises(ProjectError, match=rf"'{name}' is a name of PyTorch already: {re.escape(user)};"):
        names.check_with_torch(name)


def test_a_name_that_torch_does_not_use_is_accepted():
    assert names.check_with_torch("aurora") == ""


def test_without_torch_the_command_says_what_it_did_not_check(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(names, "find_spec", lambda module: None)
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path) == 0
    assert "note: torch is not installed: whether PyTorch uses the name 'aurora'" in capsys.readouterr().err


def test_a_torch_of_another_release_is_noted(without_torch, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "version", {"torch": "2.1.3+cpu"}.get)
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path) == 0
    noted = capsys.readouterr().err.splitlines()[0]
    assert noted.startswith(f"note: the project is for torch {pinned_torch()}, and torch 2.1.3+cpu is installed;")
    assert run(["update", str(tmp_path)], "python -m openreg_doctor") == 0
    assert capsys.readouterr().err == f"{noted}\n"


def test_a_torch_that_cannot_be_imported_is_no_reason_against_a_name(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("raise RuntimeError('broken')", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert names.check_with_torch("nn").startswith("torch cannot be imported: whether PyTorch uses the name 'nn'")


@pytest.mark.parametrize(
    ("compiler", "note"),
    [
        (None, "there is no C++ compiler (c++, g++, clang++, cl)"),
        (" ", "there is no C++ compiler (c++, g++, clang++, cl)"),
        ("mycc -O2", "(mycc)"),
    ],
)
def test_a_missing_compiler_is_noted(compiler, note, without_torch, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "which", lambda program: None)
    monkeypatch.delenv("CXX", raising=False)
    if compiler:
        monkeypatch.setenv("CXX", compiler)
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path) == 0
    assert note in capsys.readouterr().err


def test_missing_build_tools_are_noted(without_torch, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "which", {"g++": "/usr/bin/g++", "cmake": "/usr/bin/cmake"}.get)
    monkeypatch.setattr(command, "find_spec", lambda module: None)
    monkeypatch.delenv("CXX", raising=False)
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path) == 0
    assert capsys.readouterr().err == "note: the build also needs: pip install ninja scikit-build-core\n"


@pytest.mark.parametrize(
    "arguments",
    [(), ("torch-aurora",), ("torch-aurora", "--device", "aurora", "--step", "2"), ("a", "b", "--device", "aurora")],
)
def test_incomplete_or_unknown_arguments_are_refused(arguments, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert new(*arguments) == 2
    assert "usage: python -m openreg_doctor" in capsys.readouterr().err
    assert not files_in(tmp_path)


def test_an_installation_without_the_tutorial_is_reported(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(files, "_folder", lambda: tmp_path)
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path / "project") == 2
    assert "lacks its folder tutorial/step1; install it again" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_reported(without_torch, tmp_path, capsys):
    (tmp_path / "file").write_text("", "utf-8")
    assert new("torch-aurora", "--device", "aurora", "--folder", tmp_path / "file" / "project") == 2
    assert capsys.readouterr().err.startswith("new: ")


def test_the_doctor_itself_keeps_its_options(capsys):
    assert run(["--device", "cuda"], "python -m openreg_doctor") == 2
    assert "one of PyTorch's own devices" in capsys.readouterr().err
