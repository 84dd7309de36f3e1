# SPDX-License-Identifier: BSD-3-Clause
"""Tools that nox sessions use are right: the order of packages, keys of wheels, and checks of environments."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import lief
import pytest
import yaml
from helpers import run

from tools import _platform, packages
from tools.packages import ROOT, git
from tools.releases import torch_sessions
from tools.sessions import linked, package_session, stopwatch, wheelhouse
from tools.systems import check_exports


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


def test_torch_and_compiler_settings_change_every_key(tree, monkeypatch):
    before = keys(tree)
    assert set(before.values()).isdisjoint(keys(tree, torch="2.13.1").values())
    monkeypatch.setenv("CXXFLAGS", "-O0 -g")
    assert set(before.values()).isdisjoint(keys(tree).values())


def make_wheel(folder, name, content="x"):
    path = folder / f"{name.replace('-', '_')}-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        record = f"{name}/__init__.py,sha256={content},1\n"
        archive.writestr(f"{name.replace('-', '_')}-0.1.0.dist-info/RECORD", record)
    return path


def test_an_environment_is_clean_with_exactly_the_wheels_wanted(tmp_path):
    site = tmp_path / _platform.SITE_PACKAGES.replace("*", "3.11")
    runtime, ops = ({name: make_wheel(tmp_path, name)} for name in ("openreg-runtime", "openreg-ops"))
    for wheels, fits in (({}, {}), (runtime, runtime), (ops, {**runtime, **ops})):
        for wheel in wheels.values():
            zipfile.ZipFile(wheel).extractall(site)
        assert [item for item in ({}, runtime, ops, {**runtime, **ops}) if package_session.holds(tmp_path, item)] == [
            fits
        ]
    intruder = site / "openreg_intruder-1.0.dist-info"
    intruder.mkdir()
    assert not package_session.holds(tmp_path, {**runtime, **ops})
    intruder.rmdir()
    assert package_session.holds(tmp_path, {**runtime, **ops})
    make_wheel(tmp_path, "openreg-ops", content="another build")
    assert not package_session.holds(tmp_path, {**runtime, **ops})


class Session:
    """As much of a session of nox as an installation uses."""

    name = "test-openreg-ops"

    def __init__(self, environment):
        self.virtualenv = SimpleNamespace(location=str(environment))

    def error(self, message):
        raise RuntimeError(message)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs openreg-ops, which needs openreg-runtime, where the installer brings the wheels that it is given.

    Returns the names that were removed from the environment before.
    """
    site = tmp_path / "environment" / _platform.SITE_PACKAGES.replace("*", "3.11")
    site.mkdir(parents=True)
    ops = packages.Package("openreg-ops", tmp_path, "0.1.0", ("openreg-runtime",), (), {}, {})
    wheels = {name: make_wheel(tmp_path, name) for name in ("openreg-runtime", "openreg-ops")}
    house = SimpleNamespace(
        packages={"openreg-ops": ops}, provide=lambda *_: wheels, stopwatch=stopwatch.Stopwatch(), dist=tmp_path
    )

    def install(*brought):
        removed = []

        def uninstall(*arguments):
            removed.extend(arguments[arguments.index(str(tmp_path / "environment")) + 1 :])
            shutil.rmtree(site)
            site.mkdir()

        def fill(*_):
            for wheel in brought:
                zipfile.ZipFile(wheel).extractall(site)

        monkeypatch.setattr(package_session, "uv", uninstall)
        monkeypatch.setattr(package_session, "fill", fill)
        package_session.PackageSession(Session(tmp_path / "environment"), house).install("openreg-ops")
        return removed

    return install


def test_a_session_has_exactly_the_wheels_of_its_package_whatever_an_earlier_run_left(install, tmp_path):
    wanted = [make_wheel(tmp_path, name) for name in ("openreg-runtime", "openreg-ops")]
    assert install(*wanted) == []
    assert install(*wanted) == []
    (tmp_path / "environment" / _platform.SITE_PACKAGES.replace("*", "3.11") / "openreg_amp-1.0.dist-info").mkdir()
    assert set(install(*wanted)) == {"openreg_amp", "openreg_runtime", "openreg_ops"}


@pytest.mark.parametrize(
    "brought",
    [
        {"openreg-runtime": "x"},
        {"openreg-runtime": "x", "openreg-ops": "x", "openreg-amp": "x"},
        {"openreg-runtime": "x", "openreg-ops": "another build"},
    ],
    ids=["one is missing", "one that was not requested", "one of another build"],
)
def test_a_session_with_any_other_distribution_of_ours_ends(install, tmp_path, brought):
    (tmp_path / "index").mkdir()
    wheels = [make_wheel(tmp_path / "index", name, content) for name, content in brought.items()]
    with pytest.raises(RuntimeError, match="were installed") as error:
        install(*wheels)
    assert all(name.replace("-", "_") in str(error.value) for name in brought)


def test_a_wheel_that_names_a_folder_of_this_machine_is_found(tmp_path):
    folder = tmp_path / "checkout"
    clean = make_wheel(tmp_path, "openreg-runtime", content="openreg_runtime/csrc/device.cpp")
    assert wheelhouse.files_naming(clean, [folder]) == []
    damaged = make_wheel(tmp_path, "openreg-runtime", content=f"{folder}/csrc/device.cpp")
    assert wheelhouse.files_naming(damaged, [folder]) == ["openreg_runtime-0.1.0.dist-info/RECORD"]


def test_the_export_check_finds_what_is_missing_and_what_is_too_much(tmp_path):
    header = tmp_path / "some.h"
    header.write_text("/* OPENREG_API int orInComment(void); */\nOPENREG_API const char* orMissing(int code);\n")
    found = check_exports.problems(header, Path(lief._lief.__file__))
    said = {line.partition(": ")[2] for line in found}
    assert {
        "orMissing is declared in some.h and not exported",
        "PyInit__lief is exported and not declared in some.h",
    } <= said
    assert "orInComment" not in str(said)


def test_the_state_check_fails_where_it_should():
    script = ROOT / "tools" / "sessions" / "check_shared_state.py"
    result = run(sys.executable, str(script), "pytest_timeout=editable")
    assert result.returncode != 0
    assert "pytest_timeout is installed regular, not editable" in result.stderr


def test_the_pre_commit_file_pins_every_tool():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    installed = [hook["additional_dependencies"] for hook in repository["hooks"] if "additional_dependencies" in hook]
    assert len(installed) > 5
    assert [first for first, *_ in installed if "==" not in first] == []


BUILT = 1_600_000_000_000_000_000  # when what is built beside the copy ended, in nanoseconds


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with a file that git knows, one that it does not know yet, and one that it ignores."""
    root = tmp_path / "checkout"
    root.mkdir()
    for name, text in {"known.cpp": "1", "new.cpp": "2", "ignored.o": "3", ".gitignore": "*.o\n"}.items():
        (root / name).write_text(text)
    git(root, "init", "--quiet")
    git(root, "add", "known.cpp")
    monkeypatch.setattr(torch_sessions, "ROOT", root)
    return root


def test_a_copy_has_what_a_commit_would_have(checkout, tmp_path):
    target = tmp_path / "copy"
    target.mkdir()
    (target / "left over.cpp").write_text("of an earlier copy")
    torch_sessions.copy_repository(target)
    assert {path.name for path in torch_sessions.files(target)} == {"known.cpp", "new.cpp", ".gitignore"}
    assert git(target, "ls-files").split() == [".gitignore", "known.cpp", "new.cpp"]


def test_only_what_changed_since_the_copy_before_is_newer_than_what_was_built(checkout, tmp_path):
    target = tmp_path / "copy"
    torch_sessions.copy_repository(target)
    for path in torch_sessions.files(target):
        os.utime(path, ns=(BUILT, BUILT))
    (checkout / "known.cpp").write_text("changed while the build ran")
    os.utime(checkout / "known.cpp", ns=(BUILT - 1, BUILT - 1))
    torch_sessions.copy_repository(target)
    assert (target / "known.cpp").read_text() == "changed while the build ran"
    assert (target / "known.cpp").stat().st_mtime_ns > BUILT
    assert (target / "new.cpp").stat().st_mtime_ns == BUILT


def installed(environment, name, *, needs=(), files=("__init__.py",)):
    """A distribution in an environment, as pip leaves it."""
    site = environment / _platform.SITE_PACKAGES.replace("*", "3.11")
    record = [f"{name}/{file}" for file in files] + ["../../../bin/program"]
    for file in record:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(str(environment))
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    requirements = "".join(f"Requires-Dist: {item}\n" for item in needs)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requirements}")
    record += [f"{metadata.name}/METADATA", f"{metadata.name}/RECORD"]
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in record))
    return site


def test_a_distribution_and_what_it_needs_are_linked_and_nothing_else(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    installed(source, "torch", needs=("Needed>=1", "present", "absent; extra == 'more'"), files=("a.py", "deep/b.py"))
    installed(source, "needed", needs=("torch",))
    installed(source, "absent")
    installed(source, "present")
    site = installed(target, "present")
    (target / "bin" / "program").unlink(missing_ok=True)
    linked.link_distribution("torch", source, target)
    assert sorted(path.name for path in site.glob("*.dist-info")) == [
        *("needed-1.0.dist-info", "present-1.0.dist-info", "torch-1.0.dist-info")
    ]
    assert (site / "torch" / "deep" / "b.py").read_text() == str(source)
    assert (site / "present" / "__init__.py").read_text() == str(target)
    assert not (target / "bin" / "program").exists()


def test_what_is_not_installed_is_not_linked(tmp_path):
    installed(tmp_path / "source", "other")
    site = installed(tmp_path / "target", "third")
    linked.link_distribution("torch", tmp_path / "source", tmp_path / "target")
    assert [path.name for path in site.glob("*.dist-info")] == ["third-1.0.dist-info"]


LOCKED = """
import sys
from pathlib import Path
from tools.sessions.lock import lock
lock(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_run_beside_one_that_works_is_refused(tmp_path):
    command = [sys.executable, "-c", LOCKED, str(tmp_path)]
    variables = {"NOX_FOLDER_LOCKED": ""}
    first = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout.readline() == "locked\n"
        second = run(*command, cwd=ROOT, **variables)
        assert second.returncode == 2
        assert f"another run works in {tmp_path} (process {first.pid}); wait until it has ended" in second.stderr
        within = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "NOX_FOLDER_LOCKED": str(tmp_path)}, input="", text=True, check=False
        )
        assert within.returncode == 0
    finally:
        first.communicate("")
    again = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, input="", text=True, check=False)
    assert again.returncode == 0
