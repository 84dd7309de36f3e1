# SPDX-License-Identifier: BSD-3-Clause
"""The checks of packages and wheels pass for good ones, and find each planted problem."""

import sys
from pathlib import Path

import pytest
from helpers import run
from tiny_wheels import write_wheel

from tools.packages import ROOT, discover, read_package
from tools.sessions import wheel_quality

PACKAGE = read_package(ROOT / "templates" / "package")
NAME = PACKAGE.import_name
SOURCES = {
    path.relative_to(PACKAGE.folder / "src").as_posix(): path.read_text("utf-8")
    for path in PACKAGE.folder.glob("src/*/*.*")
}


def wheel(folder, without=(), **files):
    content = {name: text for name, text in {**SOURCES, **files}.items() if name not in without}
    return write_wheel(folder, PACKAGE.name, PACKAGE.version, files=content)


def problem_of(made):
    """Returns the output of the command that checks a wheel if it fails, and an empty string otherwise."""
    program, *arguments = wheel_quality.contents(PACKAGE, str(made))
    result = run(str(Path(sys.executable).with_name(program)), *arguments)
    return result.stdout + result.stderr if result.returncode else ""


def test_a_good_wheel_passes(tmp_path):
    assert problem_of(wheel(tmp_path)) == ""


@pytest.mark.parametrize(
    ("without", "beside", "said"),
    [
        ([f"{NAME}/py.typed"], {}, f"missing files in package tree:\n  {NAME}/py.typed"),
        ([], {"tests/test_it.py": "assert True"}, "common toplevel name in library:\n  tests/"),
    ],
)
def test_a_missing_file_and_what_lies_beside_the_package_are_found(tmp_path, without, beside, said):
    assert said in problem_of(wheel(tmp_path, without, **beside))


PROJECTS = [*(package.folder for package in discover().values()), ROOT / "templates" / "package"]


def problems_of(folder):
    options = ("--no-ansi", "--optional-dependencies-dev-groups", "test")
    result = run(sys.executable, "-m", "deptry", "src", *options, cwd=folder)
    found = [line for line in result.stderr.splitlines() if ": DEP" in line]
    assert bool(found) == bool(result.returncode), result.stderr
    return found


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda folder: folder.name)
def test_every_package_declares_what_it_imports_and_nothing_else(folder):
    assert problems_of(folder) == []


@pytest.mark.parametrize(
    ("imported", "found"),
    [
        ("numpy.linalg", "DEP004 'numpy'"),  # only its tests need it
        ("openreg_profiler", "DEP001 'openreg_profiler'"),  # a package of ours that is not declared
    ],
)
def test_an_import_that_a_package_does_not_declare_is_found(checkout, imported, found):
    package = checkout / "packages" / "openreg-ops"
    (package / "src" / "openreg_ops" / "planted.py").write_text(f"import {imported}\n", "utf-8")
    (problem,) = problems_of(package)
    assert f"planted.py:1:8: {found}" in problem
