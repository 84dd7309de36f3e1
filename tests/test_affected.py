# SPDX-License-Identifier: BSD-3-Clause
"""A change touches the lanes of what it changed and of all that depends on it, in histories made up here."""

import fnmatch
import json

import nox
import pytest
from helpers import write_files

import noxfile
from tools import affected, packages
from tools.affected import Session
from tools.packages import ROOT

# Each package needs those before it that it names.
NEEDS = {
    "openreg-runtime": (),
    "openreg-ops": ("openreg-runtime",),
    "openreg-amp": ("openreg-runtime",),
    "openreg-autoload": (),
    "openreg-meta": ("openreg-ops", "openreg-amp", "openreg-autoload"),
    "openreg-testing": (),
}
# What only the tests of a package ask for.
TESTS_NEED = {"openreg-ops": ("openreg-testing",)}
DRIVER = Session("tsan", files=("packages/openreg-runtime/csrc/driver/*", "packages/openreg-runtime/tests/stress/*"))


def git(root, *arguments):
    identity = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
    return affected.git(root, *identity, *arguments).strip()


def write(root, file, text="changed\n"):
    write_files(root, {file: text})


def commit(root):
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "change")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def initial(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    git(root, "init", "--quiet", "--initial-branch", "main")
    for name, needed in NEEDS.items():
        table = f'[build-system]\nrequires = []\n[project]\nname = "{name}"\nversion = "0.1.0"\n'
        extras = f"[project.optional-dependencies]\ntest = {list(TESTS_NEED.get(name, ()))}\n"
        write(root, f"packages/{name}/pyproject.toml", f"{table}dependencies = {list(needed)}\n{extras}")
        for file in ("README.md", "CMakeLists.txt", "csrc/module.cpp", "src/module/__init__.py", "tests/test_it.py"):
            write(root, f"packages/{name}/{file}", "first\n")
        write(root, f"examples/{name}.py", "first\n")
    for file in ("README.md", "noxfile.py", "tools/lane.py", "tests/test_it.py", "benchmarks/run.py"):
        write(root, file, "first\n")
    write(root, "packages/openreg-runtime/csrc/driver/objects/device.cpp", "first\n")
    return root, commit(root)


@pytest.fixture
def tree(initial):
    root, first = initial
    yield root
    git(root, "checkout", "--quiet", "--force", "main")
    git(root, "reset", "--quiet", "--hard", first)
    git(root, "clean", "--quiet", "-d", "--force")


def touched(root, revision="HEAD"):
    found = packages.discover(root)
    sessions = [Session("lint"), *map(affected.lane_session, found.values()), DRIVER]
    names = affected.affected(affected.changed_files(root, revision), sessions, found)
    return {name.removeprefix("test-openreg-") for name in names}


EVERYTHING = {"lint", "runtime", "ops", "amp", "autoload", "meta", "testing", "tsan"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["packages/openreg-runtime/include/openreg/runtime/launch.h"], {"runtime", "ops", "amp", "meta"}),
        (["packages/openreg-runtime/csrc/driver/objects/device.cpp"], {"runtime", "ops", "amp", "meta", "tsan"}),
        (["packages/openreg-runtime/tests/stress/test_x.py"], {"runtime", "tsan"}),
        (["packages/openreg-runtime/docs/abi.json"], {"runtime"}),
        ([f"packages/openreg-ops/{name}" for name in ("csrc/module.cpp", "CMakeLists.txt")], {"ops", "meta"}),
        (["packages/openreg-ops/pyproject.toml"], {"ops", "meta"}),
        (["packages/openreg-autoload/src/module/__init__.py"], {"autoload", "meta"}),
        (["packages/openreg-testing/src/module/__init__.py"], {"testing", "ops"}),
        (["packages/openreg-meta/src/module/__init__.py"], {"meta"}),
        (["packages/openreg-ops/tests/test_it.py", "examples/openreg-ops.py", "examples/openreg-ops-x.py"], {"ops"}),
        (["packages/openreg-ops/README.md", "packages/openreg-ops/CHANGELOG.md", "docs/guide/index.md"], set()),
        (["README.md", "LICENSE", "tests/test_it.py", "benchmarks/run.py"], set()),
        (["noxfile.py", "tools/lane.py", "pyproject.toml", ".github/workflows/ci.yml", ".ci/run"], EVERYTHING),
        (["packages/openreg-gone/src/module.py", "packages/notes.txt"], EVERYTHING),
    ],
)
def test_a_file_touches_the_lanes_that_see_it(tree, files, expected):
    for file in files:
        kept = (tree / file).read_text("utf-8") if (tree / file).exists() else None
        write(tree, file, f"{kept if kept and file.endswith('.toml') else ''}# changed\n")
        assert touched(tree) == expected | {"lint"}, file
        (tree / file).unlink() if kept is None else write(tree, file, kept)


def test_a_document_touches_the_sessions_that_name_it(tree):
    sessions = [Session("lint"), Session("docs", files=("docs/*", "*.md")), DRIVER]
    for file in ("README.md", "packages/openreg-ops/README.md", "docs/guide/index.md"):
        assert affected.affected([file], sessions, packages.discover(tree)) == ["lint", "docs"]
    for files in (["LICENSE"], []):
        assert affected.affected(files, sessions, packages.discover(tree)) == ["lint"]


@pytest.mark.parametrize("state", ["new", "staged", "committed", "removed", "renamed"])
def test_a_change_counts_in_every_state(tree, state):
    file = "packages/openreg-amp/csrc/module.cpp"
    if state == "renamed":
        write(tree, "packages/openreg-autoload/csrc/rules.cpp", (tree / file).read_text("utf-8"))
    if state in {"removed", "renamed"}:
        (tree / file).unlink()
    else:
        write(tree, "packages/openreg-amp/csrc/rules.cpp")
    if state != "new":
        git(tree, "add", "--all")
    if state == "committed":
        commit(tree)
    expected = {"lint", "amp", "meta"} | ({"autoload"} if state == "renamed" else set())
    assert touched(tree, "HEAD~1" if state == "committed" else "HEAD") == expected


def test_what_others_changed_on_the_main_branch_does_not_count(tree):
    git(tree, "checkout", "--quiet", "-b", "feature")
    write(tree, "packages/openreg-amp/csrc/module.cpp")
    commit(tree)
    git(tree, "checkout", "--quiet", "main")
    write(tree, "packages/openreg-runtime/csrc/module.cpp")
    commit(tree)
    git(tree, "checkout", "--quiet", "feature")
    assert touched(tree, "main") == {"lint", "amp", "meta"}
    git(tree, "checkout", "--quiet", "main")
    git(tree, "branch", "--delete", "--force", "feature")


@pytest.mark.parametrize("revision", ["nonsense", "", "--all", "0" * 40, "HEAD~1000", "other"])
def test_a_revision_without_a_common_history_is_refused(tree, tmp_path, revision):
    git(tree, "checkout", "--quiet", "--orphan", "other")
    write(tree, "alone")  # or it is the first commit of main again, where both are of one second
    commit(tree)
    git(tree, "checkout", "--quiet", "main")
    for folder in (tree, tmp_path):
        with pytest.raises(ValueError, match=f"'{revision}' and HEAD have no commit in common"):
            affected.changed_files(folder, revision)
    git(tree, "branch", "--delete", "--force", "other")


def test_the_lists_go_to_the_workflow(tmp_path, monkeypatch):
    output = tmp_path / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    affected.publish({"lanes": ["lint"], "slow": []})
    pairs = [line.split("=", 1) for line in output.read_text("utf-8").splitlines()]
    assert {name: json.loads(value) for name, value in pairs} == {"lanes": ["lint"], "slow": []}


def test_every_session_that_is_listed_exists_and_reads_files_that_exist():
    existing = set(nox.registry.get())
    files = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for session in [*noxfile.DEFAULT, *noxfile.SLOW]:
        assert session.name in existing
        assert set(session.packages) <= set(packages.discover(ROOT))
        lane = session.name.startswith("test-")
        assert lane or [item for item in session.files if not fnmatch.filter(files, item)] == []
