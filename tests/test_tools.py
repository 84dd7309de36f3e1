# SPDX-License-Identifier: BSD-3-Clause
"""What the nox sessions stand on: package order, wheel keys, environments proved clean, times."""

import subprocess
import sys
import zipfile
from pathlib import Path

import lief
import pytest

from tools import _platform, check_exports, lane, packages, stopwatch, wheelhouse
from tools.packages import ROOT


def add_package(root, name, dependencies=()):
    folder = root / "packages" / name
    (folder / "csrc").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "csrc" / "module.cpp").write_text("// one\n")
    (folder / "tests" / "test_one.py").write_text("# one\n")
    declared = ", ".join(f'"{item}"' for item in dependencies)
    (folder / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["scikit-build-core", "torch==2.13.*"]\n'
        f'[project]\nname = "{name}"\nversion = "0.1.0"\ndependencies = [{declared}]\n'
    )
    return folder


@pytest.fixture
def tree(tmp_path):
    add_package(tmp_path, "openreg-a", ["openreg-c==0.1.*"])
    add_package(tmp_path, "openreg-b", ["torch==2.13.*"])
    add_package(tmp_path, "openreg-c", ["OpenReg_B==0.1.*"])
    return tmp_path


def keys(root, torch="2.13.0"):
    house = wheelhouse.Wheelhouse(root, packages.discover(root), stopwatch.Stopwatch())
    return house.keys(torch)


class AskedSession:
    """What a wheelhouse asks of nox."""

    def __init__(self, folder):
        self.cache_dir = folder

    def error(self, message):
        raise RuntimeError(message)


def test_environments_get_the_torch_that_pip_knows(tmp_path):
    house, session = wheelhouse.Wheelhouse(tmp_path, {}, stopwatch.Stopwatch()), AskedSession(tmp_path)
    site = house.environment(session) / _platform.SITE_PACKAGES.replace("*", "3.11")
    with pytest.raises(RuntimeError, match="no torch"):
        house.constraints(session)
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "version.py").write_text("__version__ = '2.15.0+cu132'\n")
    (site / "torch-2.15.0.dist-info").mkdir()
    assert house.constraints(session).read_text() == "torch==2.15.0\n"


def changed(before, after):
    return {name for name in before if before[name] != after[name]}


def test_packages_come_after_what_they_depend_on(tree):
    assert list(packages.discover(tree)) == ["openreg-b", "openreg-c", "openreg-a"]


def test_a_lane_holds_the_package_and_what_it_needs_only():
    found = packages.discover(ROOT)
    assert packages.closure("openreg-doctor", found) == ["openreg-doctor"]
    assert packages.closure("openreg-runtime", found) == ["openreg-doctor", "openreg-runtime"]
    assert packages.closure("openreg-ops", found) == ["openreg-doctor", "openreg-runtime", "openreg-ops"]
    assert packages.closure("openreg-autoload", found) == ["openreg-autoload"]
    brought = {f"openreg-{name}" for name in ("doctor", "runtime", "ops", "amp", "autoload", "meta")}
    assert set(packages.closure("openreg-meta", found)) == brought


def test_a_circle_is_refused(tree):
    text = (tree / "packages/openreg-b/pyproject.toml").read_text()
    text = text.replace('dependencies = ["torch==2.13.*"]', 'dependencies = ["openreg-a"]')
    (tree / "packages/openreg-b/pyproject.toml").write_text(text)
    with pytest.raises(ValueError, match="circle"):
        packages.discover(tree)


def test_a_changed_source_changes_the_key_of_its_package_and_of_those_above(tree):
    before = keys(tree)
    (tree / "packages/openreg-c/csrc/module.cpp").write_text("// two\n")
    assert changed(before, keys(tree)) == {"openreg-c", "openreg-a"}


def test_a_renamed_source_changes_the_key(tree):
    before = keys(tree)
    (tree / "packages/openreg-a/csrc/module.cpp").rename(tree / "packages/openreg-a/csrc/m.cpp")
    assert changed(before, keys(tree)) == {"openreg-a"}


def test_tests_and_build_products_do_not_change_a_key(tree):
    before = keys(tree)
    (tree / "packages/openreg-b/tests/test_one.py").write_text("# two\n")
    (tree / "packages/openreg-b/build").mkdir()
    (tree / "packages/openreg-b/build/module.o").write_text("two")
    assert changed(before, keys(tree)) == set()


def test_torch_and_compiler_settings_change_every_key(tree, monkeypatch):
    before = keys(tree)
    assert changed(before, keys(tree, torch="2.13.1")) == set(before)
    monkeypatch.setenv("CXXFLAGS", "-O0 -g")
    assert changed(before, keys(tree)) == set(before)


class Environment:
    """As much of a nox session as Lane looks at: where its environment lies."""

    def __init__(self, location):
        self.virtualenv = self
        self.location = str(location)


@pytest.fixture
def site(tmp_path):
    place = tmp_path / _platform.SITE_PACKAGES.replace("*", "3.11")
    place.mkdir(parents=True)
    return place


def make_wheel(folder, name, content="x"):
    path = folder / f"{name.replace('-', '_')}-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        record = f"{name}/__init__.py,sha256={content},1\n"
        archive.writestr(f"{name.replace('-', '_')}-0.1.0.dist-info/RECORD", record)
    return path


def unpack(wheel, site):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)


def holds(location, wheels):
    return lane.Lane(Environment(location), {}, None, None)._holds(wheels)


def test_an_environment_is_clean_with_exactly_the_wheels_wanted(tmp_path, site):
    runtime = make_wheel(tmp_path, "openreg-runtime")
    ops = make_wheel(tmp_path, "openreg-ops")
    unpack(runtime, site)
    assert holds(tmp_path, {"openreg-runtime": runtime})
    assert not holds(tmp_path, {"openreg-runtime": runtime, "openreg-ops": ops})
    unpack(ops, site)
    assert not holds(tmp_path, {"openreg-runtime": runtime})
    assert holds(tmp_path, {"openreg-runtime": runtime, "openreg-ops": ops})


def test_an_environment_with_another_build_of_a_wheel_is_not_clean(tmp_path, site):
    unpack(make_wheel(tmp_path, "openreg-runtime", content="old"), site)
    new = make_wheel(tmp_path, "openreg-runtime", content="new")
    assert not holds(tmp_path, {"openreg-runtime": new})


def test_a_wheel_that_names_a_folder_of_this_machine_is_found(tmp_path):
    folder = tmp_path / "checkout"
    clean = make_wheel(tmp_path, "openreg-runtime", content="openreg_runtime/csrc/device.cpp")
    assert wheelhouse.files_naming(clean, [folder]) == []
    damaged = make_wheel(tmp_path, "openreg-runtime", content=f"{folder}/csrc/device.cpp")
    assert wheelhouse.files_naming(damaged, [folder]) == ["openreg_runtime-0.1.0.dist-info/RECORD"]


def test_the_times_of_all_steps_are_printed_and_written(tmp_path, capsys):
    watch = stopwatch.Stopwatch()
    with watch.step("lint", "install"):
        pass
    with pytest.raises(RuntimeError), watch.step("test-openreg-ops", "pytest"):
        raise RuntimeError("a failed step is counted too")
    watch.report(tmp_path / "deep" / "times.txt")
    printed = capsys.readouterr().out
    for word in ("lint", "install", "test-openreg-ops", "pytest", "total"):
        assert word in printed
        assert word in (tmp_path / "deep" / "times.txt").read_text(encoding="utf-8")


def test_the_export_check_finds_what_is_missing_and_what_is_too_much(tmp_path):
    header = tmp_path / "some.h"
    header.write_text("/* OPENREG_API int orInComment(void); */\nOPENREG_API const char* orMissing(int code);\n")
    found = check_exports.problems(header, Path(lief._lief.__file__))
    assert [line.split(": ")[1] for line in found if "orMissing" in line] == [
        "orMissing is declared in some.h and not exported"
    ]
    assert any("PyInit__lief is exported and not declared in some.h" in line for line in found)
    assert not any("orInComment" in line for line in found)


def test_time_between_steps_is_the_environments_only_before_the_first_one(monkeypatch):
    clock = iter([0, 5, 6, 9, 10, 20, 21, 21])
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(stopwatch, "processor_seconds", lambda: 0.0)
    watch = stopwatch.Stopwatch()
    for session in ("test-openreg-a", "test-openreg-a", "test-openreg-b"):
        with watch.step(session, "pytest"):
            pass
    gaps = [line.split() for line in watch.table().splitlines() if "pytest" not in line]
    assert gaps[1:-1] == [
        ["test-openreg-a", "create", "environment", "5.0", "0.0"],
        ["test-openreg-a", "between", "steps", "3.0", "0.0"],
        ["test-openreg-b", "create", "environment", "10.0", "0.0"],
    ]


def test_the_state_check_fails_where_it_should():
    script = ROOT / "tools" / "check_shared_state.py"
    result = subprocess.run(
        [sys.executable, str(script), "pytest_timeout=editable"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "pytest_timeout is installed regular, not editable" in result.stderr


def test_the_pre_commit_file_pins_every_tool():
    text = Path(ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    tools = [
        line.split("[")[1].split(",")[0].rstrip("]") for line in text.splitlines() if "additional_dependencies" in line
    ]
    assert tools
    assert all("==" in tool for tool in tools)


MARKED = """
import pytest

@pytest.mark.endurance
def test_for_an_hour():
    pass

def test_at_once():
    pass
"""


@pytest.mark.parametrize(("arguments", "ran"), [((), "test_at_once"), (("-m", "endurance"), "test_for_an_hour")])
def test_a_lane_leaves_out_what_lasts(tmp_path, arguments, ran):
    (tmp_path / "test_it.py").write_text(MARKED, "utf-8")
    command = [sys.executable, *lane.PYTEST, "--verbose", *arguments, str(tmp_path / "test_it.py")]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert f"{ran} PASSED" in result.stdout
    assert "1 passed, 1 deselected" in result.stdout
