# SPDX-License-Identifier: BSD-3-Clause
"""`update` brings what the templates changed into a project, and keeps what its author changed."""

import json
import re

import pytest

from openreg_doctor.launch import run
from openreg_doctor.projects import files, update
from openreg_doctor.projects.files import RECORD, Project
from openreg_doctor.projects.names import Names, ProjectError

NAMES = Names("torch-aurora", "aurora")
GUARD, PROJECT = "csrc/guard.cpp", "pyproject.toml"
HEADER, DRIVER = "csrc/driver.h", "csrc/driver.cpp"


@pytest.fixture
def folder(tmp_path):
    """A project of step 3, as this version writes it."""
    write(tmp_path, files.make(NAMES, 3))
    return tmp_path


def write(folder, project):
    for path, text in {**project.files, RECORD: files.record_of(project)}.items():
        update.write(folder / path, text)


def replace(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def pretend_older(folder, path, today, before):
    """Changes a file and the record, as if an older version had written other text."""
    project = files.read_record(folder)
    texts = dict(project.files)
    assert today in texts[path]
    texts[path] = texts[path].replace(today, before)
    write(folder, Project(project.names, project.step, texts))


def updated(folder, *arguments):
    return run(["update", str(folder), *map(str, arguments)], "python -m openreg_doctor")


def texts(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_without_a_change_of_the_templates_nothing_is_written(folder, capsys):
    replace(folder / GUARD, "namespace aurora {", "// mine\nnamespace aurora {")
    before = texts(folder)
    assert updated(folder) == 0
    assert texts(folder) == before
    assert capsys.readouterr().out == "up to date\n"


def test_a_file_that_the_author_left_alone_is_replaced(folder, capsys):
    pretend_older(folder, PROJECT, 'version = "0.1.0"', 'version = "0.0.9"')
    assert updated(folder) == 0
    assert (folder / PROJECT).read_text("utf-8") == files.make(NAMES, 3).files[PROJECT]
    assert files.read_record(folder) == files.make(NAMES, 3)
    assert f"{PROJECT}: replaced, as you had not changed it" in capsys.readouterr().out


def test_changes_of_other_lines_are_merged(folder, capsys):
    pretend_older(folder, GUARD, "// How PyTorch switches devices", "// Switches devices")
    replace(folder / GUARD, "C10_REGISTER_GUARD_IMPL", "// mine\nC10_REGISTER_GUARD_IMPL")
    assert updated(folder) == 0
    text = (folder / GUARD).read_text("utf-8")
    assert "// How PyTorch switches devices" in text
    assert "// mine\nC10_REGISTER_GUARD_IMPL" in text
    assert f"{GUARD}: merged with your changes" in capsys.readouterr().out
    assert updated(folder) == 0
    assert (folder / GUARD).read_text("utf-8") == text


def test_a_project_of_another_pytorch_gets_the_pins_of_this_one_and_keeps_what_its_author_wrote(folder):
    today = files.make(NAMES, 3).files[PROJECT]
    (pin,) = set(re.findall(r"torch==\S+\*", today))
    pretend_older(folder, PROJECT, pin, "torch==2.9.*")
    replace(folder / PROJECT, 'version = "0.1.0"', 'version = "7.0"')
    replace(folder / "csrc/driver.cpp", "kDeviceCount = 2;", "kDeviceCount = 8;")
    replace(folder / "README.md", "# torch-aurora", "# The Aurora backend")
    (folder / "csrc/gelu.cpp").write_text("// an operator of the author\n", "utf-8")
    before = texts(folder)
    assert updated(folder) == 0
    assert (folder / PROJECT).read_text("utf-8") == today.replace('version = "0.1.0"', 'version = "7.0"')
    changed = {path.name for path, text in texts(folder).items() if before.get(path) != text}
    assert changed == {PROJECT, RECORD}


def test_changes_of_the_same_line_are_marked_and_listed(folder, capsys):
    pretend_older(folder, PROJECT, 'version = "0.1.0"', 'version = "0.0.9"')
    replace(folder / PROJECT, 'version = "0.0.9"', 'version = "7.0"')
    assert updated(folder) == 1
    assert (
        '<<<<<<< yours\nversion = "7.0"\n||||||| as it was written\nversion = "0.0.9"\n'
        '=======\nversion = "0.1.0"\n>>>>>>> update\n'
    ) in (folder / PROJECT).read_text("utf-8")
    printed = capsys.readouterr()
    line = (folder / PROJECT).read_text("utf-8").splitlines().index("<<<<<<< yours") + 1
    assert f"{PROJECT}:{line}: CONFLICT: decide what stays, and delete the lines with <<<<<<<, " in printed.err


def test_an_update_over_marks_of_the_last_one_is_refused(folder, capsys):
    pretend_older(folder, PROJECT, 'version = "0.1.0"', 'version = "0.0.9"')
    replace(folder / PROJECT, 'version = "0.0.9"', 'version = "7.0"')
    assert updated(folder) == 1
    before = texts(folder)
    assert updated(folder) == 2
    printed = capsys.readouterr().err
    assert f"update: {PROJECT}:{update.marked((folder / PROJECT).read_text('utf-8'))}: has marks" in printed
    marks = re.findall(r"(?m)^\W{7}(?= |$)", (folder / PROJECT).read_text("utf-8"))
    assert len(marks) == 4
    assert [mark for mark in marks if mark not in printed] == []
    assert texts(folder) == before


@pytest.mark.parametrize("left", ["<<<<<<< yours", "||||||| as it was written", ">>>>>>> update"])
def test_each_mark_that_is_left_of_a_conflict_is_found(folder, left, capsys):
    replace(folder / GUARD, "namespace aurora {", f"{left}\nnamespace aurora {{")
    line = (folder / GUARD).read_text("utf-8").splitlines().index(left) + 1
    assert updated(folder) == 2
    assert f"update: {GUARD}:{line}: has marks of an earlier conflict" in capsys.readouterr().err


def test_a_later_step_adds_its_files_and_keeps_changes(folder, capsys):
    replace(folder / "csrc/fallback.cpp", "namespace aurora {", "// mine\nnamespace aurora {")
    replace(folder / "src/torch_aurora/aurora.py", '"""Returns True if the device can be used."""', '"""Mine."""')
    assert updated(folder, "--step", 6) == 0
    wanted = files.make(NAMES, 6)
    assert files.read_record(folder) == wanted
    changed = {path for path, text in wanted.files.items() if (folder / path).read_text("utf-8") != text}
    assert changed == {"csrc/fallback.cpp", "src/torch_aurora/aurora.py"}
    module = (folder / "src/torch_aurora/aurora.py").read_text("utf-8")
    assert '"""Mine."""' in module
    assert "def get_rng_state" in module
    assert "csrc/queue.cpp: added" in capsys.readouterr().out


def test_a_file_that_the_author_deleted_stays_deleted(folder, capsys):
    pretend_older(folder, "check.py", "assert", "Assert")
    (folder / "check.py").unlink()
    assert updated(folder) == 1
    assert not (folder / "check.py").exists()
    printed = capsys.readouterr().err
    assert "check.py: you deleted it, and the update changes it; what you have instead may need the same:" in printed
    assert "\n-Assert" in printed
    assert "\n+assert" in printed
    assert updated(folder) == 0


def own_driver(folder, *definitions):
    """Puts a driver of the author's in the place of the template's."""
    (folder / DRIVER).unlink()
    (folder / "csrc/chip.cpp").write_text("\n".join(definitions), "utf-8")


OWN_DRIVER = (
    "// auroraStreamCreate(int device) {",
    "int auroraGetDeviceCount(void) { return 1; }",
    "void auroraMemGetInfo(int device, size_t* free, size_t* total) noexcept {}",
    "void* auroraMalloc(int device, size_t nbytes)\n{ return chip_malloc(device, nbytes); }",
    "void auroraFree(int device, void* memory) {}",
    "void auroraMemcpy(void* destination, const void* source, size_t nbytes) {",
    '  auroraStreamLast(stream);\n  if (auroraStreamIsDone(stream, 1)) {\n  }\n  log("auroraStreamWait() {");\n}',
    "uint64_t auroraLaunch(auroraStream* stream, void (*kernel)(void*), void* argument) {}",
)


def test_each_update_ends_with_the_functions_that_the_driver_lacks_until_it_defines_them(folder, capsys):
    own_driver(folder, *OWN_DRIVER)
    missing = (
        "auroraMallocHost, auroraFreeHost, auroraStreamCreate, auroraStreamLast, auroraStreamIsDone, auroraStreamWait"
    )
    assert updated(folder, "--step", 6) == 1
    head, *_, last = capsys.readouterr().err.splitlines()
    assert (
        last == f"{HEADER}: it declares functions that no file in csrc defines, and that your driver has to: {missing}"
    )
    before = texts(folder)
    for _ in range(2):
        assert updated(folder) == 1
        assert capsys.readouterr().err.splitlines() == [head, last]
    assert texts(folder) == before
    with (folder / "csrc/chip.cpp").open("a", encoding="utf-8") as driver:
        driver.writelines(f"int {name}() {{}}\n" for name in missing.split(", "))
    assert updated(folder) == 0
    assert capsys.readouterr().out == "up to date\n"


def test_a_function_that_the_author_adds_to_the_header_is_missing_too(folder, capsys):
    replace(
        folder / HEADER, "int auroraGetDeviceCount(void);", "int auroraGetDeviceCount(void);\nint auroraReset(void);"
    )
    assert updated(folder) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith(": auroraReset")


@pytest.mark.parametrize("step", range(files.FIRST, files.LAST + 1))
def test_the_driver_of_each_step_defines_what_its_header_declares(folder, step, capsys):
    assert updated(folder, "--step", step) == 0
    (folder / DRIVER).unlink()
    assert updated(folder) == 1
    header = (folder / HEADER).read_text("utf-8")
    missing = capsys.readouterr().err.splitlines()[-1].rpartition(": ")[2].split(", ")
    assert len(missing) == (5 if step < 6 else 12)
    assert all(f"{name}(" in header for name in missing)


def test_without_a_header_of_the_driver_nothing_is_missing(folder, capsys):
    for file in (HEADER, DRIVER):
        (folder / file).unlink()
    assert updated(folder) == 0
    assert capsys.readouterr().out == "up to date\n"


def test_an_update_of_the_drivers_header_shows_the_functions_and_comments_that_changed(folder, capsys):
    first, rest = "// Allocates memory of a device, aligned to 64 bytes.", " Returns NULL where there is not enough."
    functions = "void* auroraMalloc(int device, size_t nbytes);\nvoid auroraFree(int device, void* memory);"
    pretend_older(folder, HEADER, f"{first}{rest}", first)
    replace(folder / HEADER, "#pragma once", "#pragma once\n// Mine.")
    assert updated(folder) == 0
    shown = [" " + line for line in functions.splitlines()]
    assert capsys.readouterr().out.splitlines() == [
        f"{HEADER}: merged with your changes",
        f"{HEADER}: what changed of its functions and their comments:",
        "--- as it was written",
        "+++ update",
        "@@ -1,3 +1,3 @@",
        f"-{first}",
        f"+{first}{rest}",
        *shown,
        "updated; now build and test",
    ]


def test_an_update_that_leaves_the_drivers_header_alone_shows_nothing_of_it(folder, capsys):
    pretend_older(folder, PROJECT, 'version = "0.1.0"', 'version = "0.0.9"')
    assert updated(folder) == 0
    assert HEADER not in capsys.readouterr().out


@pytest.mark.parametrize("changed", [False, True])
def test_a_file_that_the_templates_dropped_is_deleted_unless_the_author_changed_it(folder, changed, capsys):
    project = files.make(NAMES, 3)
    write(folder, Project(NAMES, 3, {**project.files, "csrc/old.cpp": "// old\n"}))
    if changed:
        (folder / "csrc/old.cpp").write_text("// mine\n", "utf-8")
    assert updated(folder) == int(changed)
    assert (folder / "csrc/old.cpp").exists() == changed
    printed = capsys.readouterr()
    assert ("csrc/old.cpp: you changed it, and it is no part" in printed.err) == changed
    assert ("csrc/old.cpp: removed" in printed.out) != changed


def test_a_file_of_the_author_where_the_update_adds_one_is_not_overwritten(folder):
    (folder / "csrc/relu.cpp").write_text("// mine\n", "utf-8")
    assert updated(folder, "--step", 4) == 1
    text = (folder / "csrc/relu.cpp").read_text("utf-8")
    assert text.startswith("<<<<<<< yours\n// mine\n")
    assert files.make(NAMES, 4).files["csrc/relu.cpp"] in text


def test_the_ends_of_lines_stay_as_they_are(folder):
    pretend_older(folder, GUARD, "// How PyTorch switches devices", "// Switches devices")
    text = (folder / GUARD).read_bytes().replace(b"#pragma once", b"").replace(b"C10_REG", b"// mine\nC10_REG")
    (folder / GUARD).write_bytes(text.replace(b"\n", b"\r\n"))
    assert updated(folder) == 0
    merged = (folder / GUARD).read_bytes()
    assert b"// How PyTorch switches devices" in merged
    assert merged.count(b"\r\n") == merged.count(b"\n")


def test_an_interrupted_update_can_be_repeated(folder):
    pretend_older(folder, GUARD, "// How PyTorch switches devices", "// Switches devices")
    pretend_older(folder, PROJECT, 'version = "0.1.0"', 'version = "0.0.9"')
    replace(folder / PROJECT, "[project]", "# mine\n[project]")
    planned = update.plan(folder, files.read_record(folder), files.make(NAMES, 3))
    first, *_ = planned.texts
    update.write(folder / first, planned.texts[first])
    assert updated(folder) == 0
    assert "# mine\n[project]" in (folder / PROJECT).read_text("utf-8")
    assert (folder / GUARD).read_text("utf-8") == files.make(NAMES, 3).files[GUARD]


def test_an_update_that_ends_early_and_is_repeated_does_not_repeat_a_conflict(folder, monkeypatch, capsys):
    pretend_older(folder, GUARD, "// How PyTorch switches devices", "// Switches devices")
    pretend_older(folder, PROJECT, 'version = "0.1.0"', 'version = "0.0.9"')
    replace(folder / GUARD, "// Switches devices", "// Mine")

    def write_but_one(path, text):
        if path.name == PROJECT:
            raise OSError("the disk is full")
        write_file(path, text)

    write_file = update.write
    with monkeypatch.context() as patched:
        patched.setattr(update, "write", write_but_one)
        assert updated(folder) == 2
    assert "update: the disk is full; the update is not complete" in capsys.readouterr().err
    assert "<<<<<<< yours\n// Mine" in (folder / GUARD).read_text("utf-8")
    decided = files.make(NAMES, 3).files[GUARD].replace("// How PyTorch switches devices", "// Mine")
    update.write(folder / GUARD, decided)
    assert updated(folder) == 0
    assert capsys.readouterr().out == f"{PROJECT}: replaced, as you had not changed it\nupdated; now build and test\n"
    assert (folder / GUARD).read_text("utf-8") == decided
    assert files.read_record(folder) == files.make(NAMES, 3)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (None, f"has no {RECORD}"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        (json.dumps({"package": "a", "device": "b", "version": "", "step": 3, "files": {"x": 1}}), "is damaged"),
        (json.dumps({"package": "a", "device": "b", "version": "", "files": {}}), "is damaged"),
        (json.dumps({"package": "a", "device": "b", "version": "", "step": 3, "files": {"../x": []}}), "is damaged"),
        (json.dumps({"package": "a", "device": "b", "version": "", "step": 3, "files": {"/x": []}}), "is damaged"),
        (json.dumps({"package": "a", "device": "b", "version": "", "step": 3, "files": {"C:x": []}}), "is damaged"),
        (json.dumps({"package": "a", "device": "b", "version": "", "step": 3, "files": {"..\\x": []}}), "is damaged"),
    ],
)
def test_a_folder_without_a_sound_record_is_refused(folder, record, said, capsys):
    (folder / RECORD).unlink()
    if record is not None:
        (folder / RECORD).write_text(record, "utf-8")
    before = texts(folder)
    assert updated(folder) == 2
    assert said in capsys.readouterr().err
    assert texts(folder) == before


@pytest.mark.parametrize(("own", "code"), [("2.13.1", 2), ("2.15.0", 0), ("2.16.0.dev1", 0), ("", 0)])
def test_an_older_version_than_that_which_wrote_the_project_is_refused(folder, own, code, monkeypatch, capsys):
    project = json.loads((folder / RECORD).read_text("utf-8"))
    (folder / RECORD).write_text(json.dumps({**project, "version": "2.15.0"}), "utf-8")
    monkeypatch.setattr(files, "own_version", lambda: own)
    assert updated(folder) == code
    said = "update: the project was written by openreg-doctor 2.15.0, and this is 2.13.1; install"
    assert (said in capsys.readouterr().err) == (code == 2)


def test_a_step_back_is_refused(folder, capsys):
    assert updated(folder, "--step", 4) == 0
    before = texts(folder)
    assert updated(folder, "--step", 3) == 2
    assert "does not go back to step 3" in capsys.readouterr().err
    assert texts(folder) == before


def test_without_git_nothing_is_changed(folder, monkeypatch, capsys):
    pretend_older(folder, PROJECT, 'version = "0.1.0"', 'version = "0.0.9"')
    before = texts(folder)
    monkeypatch.setattr(update, "which", lambda program: None)
    assert updated(folder) == 2
    assert "update: the update needs git" in capsys.readouterr().err
    assert texts(folder) == before


def test_a_file_that_is_no_text_is_refused(folder):
    (folder / GUARD).write_bytes(b"\xff\xfe")
    with pytest.raises(ProjectError, match=r"guard\.cpp cannot be read as text"):
        update.plan(folder, files.read_record(folder), files.make(NAMES, 4))
