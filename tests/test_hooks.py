# SPDX-License-Identifier: BSD-3-Clause
"""What packages declare to the doctor is true, what is made of it is current, and what is untrue is found out.

Whether the questions are complete is tested where PyTorch is installed: packages/openreg-doctor/tests.
"""

import re

import pytest

from tools import hooks
from tools.packages import ROOT

QUESTIONS = """
[guard]
title = "Guard"
about = "About guards."

[guard.getDevice]
reader = "torch"

[guard."rest, and more"]
reader = "nobody"
"""
RUNTIME = """
device = "openreg"
without = "everything"

[backend]
absent = "_providers.json"

[hooks.guard]
code = ["guard.cpp"]

[hooks.guard.getDevice]
tests = ["test_guard.py::test_it"]

[hooks.guard."rest, and more"]
status = "not applicable: nobody asks"
"""
EXTRA = """
device = "openreg"
without = "a name"

[settings.OPENREG_EXTRA]
default = "none"

[hooks.guard.getDevice]
tests = ["test_extra.py::test_with_it"]

[hooks.guard.extra]
reader = "users"
code = ["extra.py"]
tests = ["test_extra.py::test_with_it"]
"""
PYPROJECT = """
[build-system]
requires = []

[project]
name = "{name}"
version = "2.13.0"

[project.entry-points."openreg_doctor.packages"]
{module} = "{module}"
"""
TEST = "def test_it():\n    pass\n"
DECLARED = "packages/openreg-runtime/src/openreg_runtime/doctor.toml"
EXTRA_DECLARED = "packages/openreg-extra/src/openreg_extra/doctor.toml"


@pytest.fixture
def tree(tmp_path):
    """A repository whose packages declare what is so."""
    files = {hooks.QUESTIONS: QUESTIONS, DECLARED: RUNTIME, EXTRA_DECLARED: EXTRA}
    for name in ("openreg-runtime", "openreg-extra"):
        files[f"packages/{name}/pyproject.toml"] = PYPROJECT.format(name=name, module=name.replace("-", "_"))
    files["packages/openreg-runtime/guard.cpp"] = files["packages/openreg-extra/extra.py"] = ""
    files["packages/openreg-runtime/tests/test_guard.py"] = TEST
    files["packages/openreg-extra/tests/test_extra.py"] = TEST.replace("test_it", "test_with_it")
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_what_the_packages_declare_is_true_and_what_is_made_of_it_current():
    assert hooks.problems() == []
    assert hooks.out_of_date() == []
    assert {item.package.name for item in hooks.declarations()} >= {
        *("openreg-runtime", "openreg-ops", "openreg-amp", "openreg-autoload", "openreg-meta"),
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "text"),
    [
        (DECLARED, "guard.cpp", "guards.cpp", "no file packages/openreg-runtime/guards.cpp"),
        (DECLARED, "::test_it", "::test_that", "no test test_that in packages/openreg-runtime/tests/test_guard.py"),
        (DECLARED, "test_guard.py::", "test_gone.py::", "no test test_it in packages/openreg-runtime/tests/test_gone"),
        (EXTRA_DECLARED, '.py"]\ntests = ', '.py"]\nother = ', "extra: implemented, but no test fails without it"),
        (EXTRA_DECLARED, 'code = ["extra.py"]', "", "guard.extra: no package answers, and none says why not"),
        (DECLARED, "not applicable: nobody", "nobody", "the status should begin with"),
        (EXTRA_DECLARED, 'reader = "users"', "", "nobody asks for guard.extra; say who does (reader)"),
        (EXTRA_DECLARED, "[hooks.guard.getDevice]", "[hooks.guardian.getDevice]", "nobody asks for guardian.getDevice"),
        ("packages/openreg-extra/pyproject.toml", "openreg_doctor.packages", "other", "doctor.toml is not announced"),
    ],
)
def test_an_untrue_declaration_is_found_out(tree, file, old, new, text):
    assert hooks.problems(tree) == []
    data = tree / file
    assert old in data.read_text("utf-8")
    data.write_text(data.read_text("utf-8").replace(old, new), encoding="utf-8")
    (problem,) = hooks.problems(tree)
    assert text in problem


def test_a_row_becomes_a_line_with_links(tree):
    page = hooks.render(tree)
    assert "## Guard\n\nAbout guards.\n" in page
    runtime, extra = "../../openreg-runtime", "../../openreg-extra"
    tests = f"[test_guard]({runtime}/tests/test_guard.py): it<br>[test_extra]({extra}/tests/test_extra.py): with it"
    assert f"| `getDevice` | torch | 2.13 | implemented | [guard.cpp]({runtime}/guard.cpp) | {tests} |" in page
    assert "| `rest`<br>`and more` | nobody | 2.13 | not applicable: nobody asks |  |  |" in page
    assert f"| `extra` | users | 2.13 | implemented | [extra.py]({extra}/extra.py) |" in page


def test_the_models_are_the_files_that_answer(tree):
    assert hooks.models(tree)["rows"] == {
        "guard.getDevice": {"code": ["packages/openreg-runtime/guard.cpp"]},
        "guard.rest, and more": {"status": "not applicable: nobody asks"},
        "guard.extra": {"code": ["packages/openreg-extra/extra.py"]},
    }


def test_what_is_said_of_a_package_that_is_not_installed(tree):
    known = hooks.absent_packages(tree, ["openreg-extra", "openreg-silent"])
    brought = {"module": "openreg_extra", "without": "a name", "settings": ["OPENREG_EXTRA"], "hooks": ["guard.extra"]}
    assert known == {"openreg-extra": brought}


def test_a_file_that_was_not_made_again_is_named(tree):
    assert len(hooks.out_of_date(tree)) == 2
    for path, text in hooks.made(tree).items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, encoding="utf-8")
    assert hooks.out_of_date(tree) == []
    (tree / EXTRA_DECLARED).write_text(EXTRA.replace('reader = "users"', 'reader = "others"'), encoding="utf-8")
    assert hooks.out_of_date(tree) == [f"{hooks.PAGE.as_posix()} is out of date: run python -m tools.hooks"]


def test_the_settings_that_packages_read_are_declared_and_those_are_in_the_readme():
    declared = {item.package.name: set(item.data.get("settings", {})) for item in hooks.declarations()}
    shown = re.findall(r"(?m)^\| `([A-Z_]+)` \|", (ROOT / "README.md").read_text("utf-8"))
    assert sorted(shown) == sorted(name for names in declared.values() for name in names)
    for name, known in declared.items():
        sources = (ROOT / "packages" / name / "csrc").rglob("*.cpp")
        read = {found for path in sources for found in re.findall(r'"(OPENREG_[A-Z_]+)"', path.read_text("utf-8"))}
        assert read <= known, name
    assert "OPENREG_OPS" in declared["openreg-ops"]
