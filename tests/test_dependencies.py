# SPDX-License-Identifier: BSD-3-Clause
"""A package imports what it declares and declares what it imports, as deptry sees it; planted mistakes are found."""

import shutil
import subprocess
import sys

import pytest

from tools.packages import ROOT, discover

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
