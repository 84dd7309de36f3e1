# SPDX-License-Identifier: BSD-3-Clause
"""The template gives a package that keeps every rule of the repository; `nox -s template` builds and tests it."""

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
def test_the_new_package_keeps_every_rule(complaints, tree, name):
    new_package.create(tree, name, DESCRIPTION)
    assert {check.__name__: check(tree) for check in repo_checks.CHECKS} == complaints


def test_nothing_of_the_templates_name_is_left(tree):
    written = new_package.create(tree, "openreg-event-log", DESCRIPTION)
    for path in written:
        text = path.relative_to(tree).as_posix() + path.read_text("utf-8")
        for word in (
            "openreg-example",
            "openreg_example",
            "openreg::example",
            "example_scale",
            new_package.DESCRIPTION,
        ):
            assert word not in text, path
    texts = {path.name: path.read_text("utf-8") for path in written}
    assert "namespace openreg::event_log {" in texts["scale.cpp"]
    assert f'description = "{DESCRIPTION}"' in texts["pyproject.toml"]
    assert f'"""{DESCRIPTION}.\n' in texts["__init__.py"]


def test_it_gains_its_lane_and_its_subsets_with_no_edit_elsewhere(tree):
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    new_package.create(tree, "openreg-tally", DESCRIPTION)
    assert all(path.read_bytes() == content for path, content in before.items())
    found = packages.discover(tree)
    assert found["openreg-tally"].import_name == "openreg_tally"
    needed = {"openreg-doctor", "openreg-runtime", "openreg-ops"}
    assert set(packages.closure("openreg-tally", found)) == {*needed, "openreg-tally"}
    assert {"runtime+ops+tally", "runtime+ops+tally+autoload", "meta+tally"} <= set(subsets.subsets(found))
    lane = affected.lane_session(found["openreg-tally"])
    assert affected.affected(["packages/openreg-ops/csrc/module.cpp"], [lane], found) == ["test-openreg-tally"]


def test_ci_gains_the_lanes_of_eight_packages_by_itself(tree):
    for number in range(8):
        new_package.create(tree, f"openreg-stub{number}", DESCRIPTION)
    shutil.copy2(ROOT / "noxfile.py", tree)
    shutil.copytree(ROOT / "tools", tree / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "nox", "-f", str(tree / "noxfile.py"), "-s", "ci", "--", "--list"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    listed = {line.split()[0] for line in result.stdout.splitlines() if line}
    assert listed >= {f"test-openreg-stub{number}" for number in range(8)} | {"lint", "test-openreg-meta"}


def test_it_brings_a_name_observes_launches_and_registers_after_an_import(tree):
    written = new_package.create(tree, "openreg-tally", DESCRIPTION)
    points = packages.discover(tree)["openreg-tally"].entry_points
    assert points["openreg.names"] == {"tally_scale": "openreg_tally:tally_scale"}
    texts = {path.relative_to(tree).as_posix().removeprefix("packages/"): path.read_text("utf-8") for path in written}
    assert "orSubscribe(" in texts["openreg-tally/csrc/launch_counter.cpp"]
    assert "openreg_runtime.after_import(" in texts["openreg-tally/src/openreg_tally/__init__.py"]


def test_the_longest_name_and_description_fit_into_the_lines(tree):
    name = "openreg-" + "x" * (new_package.LONGEST_NAME - 8)
    new_package.create(tree, name, "x" * new_package.LONGEST_DESCRIPTION)
    files = [tree / "examples" / f"{name}.py", *(tree / "packages" / name).rglob("*")]
    code = [path for path in files if path.suffix in {".cpp", ".h", ".py", ".pyi"}]
    assert [line for path in code for line in path.read_text("utf-8").splitlines() if len(line) > 120] == []


def test_what_it_declares_is_true_and_enters_the_tables(tree):
    new_package.create(tree, "openreg-tally", DESCRIPTION)
    assert hooks.problems(tree) == []
    assert hooks.absent_packages(tree, ["openreg-tally"])["openreg-tally"] == {
        "module": "openreg_tally",
        "without": "torch.openreg.tally_scale",
        "settings": [],
        "hooks": ["module.tally_scale"],
    }
    assert "`tally_scale`" in hooks.render(tree)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openreg-ops", "is taken: packages/openreg-ops exists"),
        ("openreg-", "is no name for a package"),
        ("openreg", "is no name for a package"),
        ("tally", "is no name for a package: write openreg-NAME"),
        ("openreg-Tally", "small letters"),
        ("openreg_tally", "is no name for a package"),
        ("openreg-2d", "is no name for a package"),
        ("openreg-tally/../../x", "is no name for a package"),
        ("openreg-tally\n", "is no name for a package"),
        ("openreg-template", "'template' is a keyword"),
        ("openreg-lambda", "'lambda' is a keyword"),
        ("openreg-" + "x" * (new_package.LONGEST_NAME - 7), "33 characters: a package's name has at most 32"),
    ],
)
def test_a_bad_name_is_refused_and_nothing_is_written(tree, name, said):
    before = sorted(tree.rglob("*"))
    with pytest.raises(ValueError, match=r"package|taken") as error:
        new_package.create(tree, name, DESCRIPTION)
    assert said in str(error.value)
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize("text", ["", " ", 'says "x"', "a\nb", "back\\slash", "x" * 101, "Ends."])
def test_a_bad_description_is_refused_and_nothing_is_written(tree, text):
    with pytest.raises(ValueError, match="is no description: write one line of at most 100 characters"):
        new_package.create(tree, "openreg-tally", text)
    assert not (tree / "packages" / "openreg-tally").exists()


@pytest.mark.parametrize("arguments", [[], ["openreg-tally"], ["openreg-ops", DESCRIPTION], ["tally", DESCRIPTION]])
def test_the_command_refuses_with_exit_status_2(arguments):
    command = [sys.executable, "-m", "tools.new_package", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith(("usage: ", "new_package: "))
    assert "Traceback" not in result.stderr
