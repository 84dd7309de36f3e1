# SPDX-License-Identifier: BSD-3-Clause
"""Wheels are built in the order of the packages, and again after a change of anything that they depend on."""

from types import SimpleNamespace

import pytest
from tiny_wheels import write_wheel

from tools import _platform, packages
from tools.sessions import stopwatch, wheelhouse


@pytest.fixture
def tree(tmp_path):
    for name, needed in {"a": "openreg-c==0.1.*", "b": "torch==2.13.*", "c": "OpenReg_B==0.1.*"}.items():
        folder = tmp_path / "packages" / f"openreg-{name}"
        for file in ("csrc/module.cpp", "tests/test_one.py"):
            (folder / file).parent.mkdir(parents=True)
            (folder / file).write_text("one\n")
        (folder / "pyproject.toml").write_text(
            f'[build-system]\nrequires = ["scikit-build-core", "torch==2.13.*"]\n'
            f'[project]\nname = "openreg-{name}"\nversion = "0.1.0"\ndependencies = ["{needed}"]\n'
        )
    return tmp_path


def keys(root, torch="2.13.0"):
    house = wheelhouse.Wheelhouse(root, packages.discover(root), stopwatch.Stopwatch())
    return house.keys(torch)


def test_environments_get_the_torch_that_pip_knows(tmp_path):
    def error(message):
        raise RuntimeError(message)

    house = wheelhouse.Wheelhouse(tmp_path, {}, stopwatch.Stopwatch())
    session = SimpleNamespace(cache_dir=tmp_path, error=error)
    site = house.environment(session) / _platform.SITE_PACKAGES.replace("*", "3.11")
    with pytest.raises(RuntimeError, match="no torch"):
        house.constraints(session)
    (site / "torch-2.15.0.dist-info").mkdir(parents=True)
    assert house.constraints(session).read_text() == "torch==2.15.0\n"


def test_packages_come_after_what_they_depend_on(tree):
    found = packages.discover(tree)
    assert list(found) == ["openreg-b", "openreg-c", "openreg-a"]
    assert packages.closure("openreg-c", found) == ["openreg-b", "openreg-c"]


def test_a_circle_is_refused(tree):
    path = tree / "packages/openreg-b/pyproject.toml"
    path.write_text(path.read_text().replace('dependencies = ["torch==2.13.*"]', 'dependencies = ["openreg-a"]'))
    with pytest.raises(ValueError, match="circle"):
        packages.discover(tree)


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("openreg-c/csrc/module.cpp", "// two\n", {"openreg-c", "openreg-a"}),
        ("openreg-a/csrc/other.cpp", "// one\n", {"openreg-a"}),
        ("openreg-b/tests/test_one.py", "# two\n", set()),
        ("openreg-b/build/module.o", "two", set()),
    ],
)
def test_a_changed_source_changes_the_key_of_its_package_and_of_those_above(tree, file, text, expected):
    before = keys(tree)
    path = tree / "packages" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    after = keys(tree)
    assert {name for name in before if before[name] != after[name]} == expected


def test_a_changed_file_that_a_wheel_contains_from_outside_of_its_package_changes_its_key(tree):
    included = tree / "examples" / "layers" / ".github" / "tests.yml"
    included.parent.mkdir(parents=True)
    included.write_text("one\n")
    with (tree / "packages/openreg-c/pyproject.toml").open("a") as project:
        project.write('[tool.scikit-build]\nsdist.force-include = { "../../examples/layers" = "layers" }\n')
    before = keys(tree)
    included.write_text("two\n")
    after = keys(tree)
    assert {name for name in before if before[name] != after[name]} == {"openreg-c", "openreg-a"}


def test_torch_and_compiler_settings_change_every_key(tree, monkeypatch):
    before = keys(tree)
    assert set(before.values()).isdisjoint(keys(tree, torch="2.13.1").values())
    monkeypatch.setenv("CXXFLAGS", "-O0 -g")
    assert set(before.values()).isdisjoint(keys(tree).values())


def test_a_wheel_that_names_a_folder_of_this_machine_is_found(tmp_path):
    folder = tmp_path / "checkout"
    clean = write_wheel(tmp_path, "openreg-runtime", "0.1.0", files={"a.bin": "openreg_runtime/csrc/device.cpp"})
    assert wheelhouse.files_naming(clean, [folder]) == []
    damaged = write_wheel(tmp_path, "openreg-runtime", "0.1.0", files={"a.bin": f"{folder}/csrc/device.cpp"})
    assert wheelhouse.files_naming(damaged, [folder]) == ["a.bin"]
