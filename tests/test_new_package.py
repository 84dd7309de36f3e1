# SPDX-License-Identifier: BSD-3-Clause
"""The template gives a package that keeps every rule of the repository; `nox -s template` builds and tests it."""

import re
import shutil
import subprocess
import sys

import pytest

from tools import affected, hooks, new_package, packages, repo_checks, subsets
from tools.packages import ROOT

DESCRIPTION = "Counts what the device's owner wants counted"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A repository with the template, and of the packages what a checkout has of them."""
    root = tmp_path_factory.mktemp("new_package") / "repository"
    for name in ("packages", "examples", "templates"):
        ignored = shutil.ignore_patterns("build", "__pycache__")
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for name in ("LICENSE", "CONTRIBUTING.md"):
        shutil.copy2(ROOT / name, root / name)
    return root


@pytest.fixture
def tree(copy):
    """The same; what a test adds is taken away after it."""
    before = set(copy.rglob("*"))
    yield copy
    for path in sorted(set(copy.rglob("*")) - before, reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.fixture(scope="module")
def complaints(copy):
    """What the rules say of the copy, of which documents name files that it lacks."""
    return {check.__name__: check(copy) for check in repo_checks.CHECKS}


@pytest.mark.parametrize("name", ["openreg-tally", "openreg-event-log2"])
def test_the_new_package_keeps_every_rule_and_nothing_else_changes(complaints, tree, name):
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    written = new_package.create(tree, name, DESCRIPTION)
    assert {check.__name__: check(tree) for check in repo_checks.CHECKS} == complaints
    assert hooks.problems(tree) == []
    assert all(path.read_bytes() == content for path, content in before.items())
    assert hooks.absent_packages(tree, [name])[name]["hooks"] != []
    assert f'description = "{DESCRIPTION}"' in (tree / "packages" / name / "pyproject.toml").read_text("utf-8")
    for path in written:
        text = path.relative_to(tree).as_posix() + path.read_text("utf-8")
        assert not re.search(rf"openreg(-|_|::)example|example_scale|{new_package.DESCRIPTION}", text), path


def test_it_gains_its_lane_and_its_subsets(tree):
    new_package.create(tree, "openreg-tally", DESCRIPTION)
    found = packages.discover(tree)
    needed = {"openreg-doctor", "openreg-runtime", "openreg-ops"}
    assert set(packages.closure("openreg-tally", found)) == {*needed, "openreg-tally"}
    assert {"runtime+ops+tally", "runtime+ops+tally+autoload", "meta+tally"} <= set(subsets.subsets(found))
    lane = affected.lane_session(found["openreg-tally"])
    assert affected.affected(["packages/openreg-ops/csrc/module.cpp"], [lane], found) == ["test-openreg-tally"]


@pytest.mark.parametrize(
    ("name", "description"),
    [
        *((name, DESCRIPTION) for name in ("openreg-", "openreg", "tally", "openreg-Tally", "openreg_tally")),
        *((name, DESCRIPTION) for name in ("openreg-2d", "openreg-x/../../x", "openreg-x\n", "openreg-lambda")),
        ("openreg-".ljust(new_package.LONGEST_NAME + 1, "x"), DESCRIPTION),
        ("openreg-ops", DESCRIPTION),
        *(("openreg-tally", text) for text in ("", " ", 'says "x"', "a\nb", "back\\slash", "x" * 101, "Ends.")),
    ],
)
def test_a_bad_name_and_a_bad_description_are_refused_and_nothing_is_written(tree, name, description):
    before = sorted(tree.rglob("*"))
    with pytest.raises(ValueError, match=r"is no name for a package|is no description|is taken: packages"):
        new_package.create(tree, name, description)
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize("arguments", [["openreg-tally"], ["openreg-ops", DESCRIPTION]])
def test_the_command_refuses_with_exit_status_2(arguments):
    command = [sys.executable, "-m", "tools.new_package", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith(("usage: ", "new_package: "))
