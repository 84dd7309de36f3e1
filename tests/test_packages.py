# SPDX-License-Identifier: BSD-3-Clause
"""What may be wrong with a package or its wheel fails the command that looks for it, and nothing else does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lief
import pytest
import tree_sitter_cpp
from tiny_wheels import write_wheel

from tools import wheel_quality
from tools._platform import IS_LINUX, LINUX_LIBRARY_SUFFIX
from tools.packages import ROOT, discover, read_package

PACKAGE = read_package(ROOT / "templates" / "package")
NAME = PACKAGE.import_name
SOURCES = {
    path.relative_to(PACKAGE.folder / "src").as_posix(): path.read_text("utf-8")
    for path in PACKAGE.folder.glob("src/*/*.*")
}


def wheel(folder, tag="py3-none-any", without=(), **files):
    content = {name: text for name, text in {**SOURCES, **files}.items() if name not in without}
    return write_wheel(folder, PACKAGE.name, PACKAGE.version, tag=tag, files=content)


def fails(*command):
    programs = Path(sys.executable).parent
    env = {**os.environ, "PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    command = (str(programs / command[0]), *command[1:])
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return result.stdout + result.stderr if result.returncode else ""


def test_a_good_wheel_passes(tmp_path):
    made = wheel(tmp_path)
    assert fails(*wheel_quality.contents(PACKAGE, str(made))) == ""


@pytest.mark.parametrize("file", [f"{NAME}/py.typed", f"{NAME}/doctor.toml", f"{NAME}/__init__.py"])
def test_a_file_that_did_not_get_into_the_wheel_is_found(tmp_path, file):
    assert f"W101: Wheel library is missing files in package tree:\n  {file}" in fails(
        *wheel_quality.contents(PACKAGE, str(wheel(tmp_path, without=[file])))
    )


def test_what_lies_beside_the_package_is_found(tmp_path):
    made = wheel(tmp_path, **{"tests/test_it.py": "assert True"})
    assert "common toplevel name in library:\n  tests/" in fails(*wheel_quality.contents(PACKAGE, str(made)))


def native(folder, needed):
    """A wheel with an extension module, another project's, that needs one more library."""
    (module,) = Path(tree_sitter_cpp.__file__).parent.glob("_binding*")
    binary = lief.parse(str(module))
    binary.add_library(needed)
    binary.write(str(folder / "module"))
    files = {f"{NAME}/_C.abi3{LINUX_LIBRARY_SUFFIX}": (folder / "module").read_bytes()}
    return str(wheel(folder, tag="cp310-abi3-linux_x86_64", **files))


@pytest.mark.skipif(not IS_LINUX, reason="auditwheel reads libraries of Linux only")
@pytest.mark.parametrize(
    ("needed", "said"),
    [
        ("libc10", ""),
        ("libtorch_cpu", ""),
        ("libopenreg_runtime", ""),
        ("libplanted", 'required library "libplanted.'),
        ("libtorch_cuda", 'required library "libtorch_cuda.'),
    ],
)
def test_a_library_that_no_wheel_brings_is_found(tmp_path, needed, said):
    made = native(tmp_path, f"{needed}{LINUX_LIBRARY_SUFFIX}")
    output = fails(*wheel_quality.repair(made, str(tmp_path / "repaired")))
    assert said in output
    assert bool(said) == bool(output)


@pytest.mark.skipif(not IS_LINUX, reason="auditwheel reads libraries of Linux only")
def test_a_library_that_only_this_machine_has_is_found(tmp_path):
    (module,) = Path(tree_sitter_cpp.__file__).parent.glob("_binding*")
    made = native(tmp_path, str(shutil.copy2(module, tmp_path / f"libalone{LINUX_LIBRARY_SUFFIX}")))
    assert fails(*wheel_quality.repair(made, str(tmp_path / "repaired"))) == ""
    (repaired,) = (tmp_path / "repaired").iterdir()
    assert f"  {NAME}.libs/" in fails(*wheel_quality.contents(PACKAGE, str(repaired)))


PROJECTS = [*(package.folder for package in discover().values()), ROOT / "templates" / "package"]


def complaints(folder):
    command = [sys.executable, "-m", "deptry", "src", "--no-ansi", "--optional-dependencies-dev-groups", "test"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = [line for line in result.stderr.splitlines() if ": DEP" in line]
    assert bool(found) == bool(result.returncode), result.stderr
    return found


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda folder: folder.name)
def test_every_package_declares_what_it_imports_and_nothing_else(folder):
    assert complaints(folder) == []


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "said"),
    [
        ("ops", "src/openreg_ops/__init__.py", "import", "import numpy.linalg\nimport", "DEP004 'numpy'"),
        ("ops", "src/openreg_ops/__init__.py", "import", "import scipy\nimport", "DEP001 'scipy'"),
        ("runtime", "src/openreg_runtime/__init__.py", "from", "import openreg_ops\nfrom", "DEP001 'openreg_ops'"),
        ("amp", "pyproject.toml", 'dependencies = ["openreg-runtime', 'dependencies = ["rich', "DEP001 'openreg_runt"),
        ("amp", "pyproject.toml", 'dependencies = ["', 'dependencies = ["rich", "', "DEP002 'rich'"),
        ("meta", "pyproject.toml", "dependencies = [", 'dependencies = ["openreg-doctor",', "DEP002 'openreg-doctor'"),
    ],
)
def test_a_planted_mistake_is_found(tmp_path, name, file, old, new, said):
    shutil.copytree(ROOT / "packages" / f"openreg-{name}" / "src", tmp_path / "src")
    shutil.copy2(ROOT / "packages" / f"openreg-{name}" / "pyproject.toml", tmp_path)
    path = tmp_path / file
    text = path.read_text("utf-8")
    assert f"\n{old}" in text
    path.write_text(text.replace(f"\n{old}", f"\n{new}", 1), "utf-8")
    found = complaints(tmp_path)
    assert any(said in line for line in found), found
