# SPDX-License-Identifier: BSD-3-Clause
"""Installs what a package of this repository needs to be built and to run into the environment of this interpreter.

usage: python tools/sessions/build_requirements.py packages/openreg-ops

Programs such as cibuildwheel, which create their own environments, use it to build the package without isolation, and
to install what the package needs at run time before its wheel, which an index may not have yet. The environments of nox
are filled by tools/sessions/wheelhouse.py. pip finds the wheels of other packages of this repository in wheelhouse/,
where `nox -s cibuildwheel` puts them. Packages without native parts, which that session does not build, are installed
from their folders.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Makes the modules of this repository importable, whatever the current directory is.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.packages import BUILD_TOOLS, ROOT, closure, discover, read_package


def command(folder: Path) -> list[str]:
    """Returns the command of pip that installs what the package in a folder needs to be built and to run."""
    pip = [sys.executable, "-m", "pip", "install", "--find-links", str(ROOT / "wheelhouse")]
    package, packages = read_package(folder), discover(ROOT)
    needed = (packages[name].folder for name in closure(package.name, packages) if name != package.name)
    pure = (str(path) for path in needed if not (path / "CMakeLists.txt").is_file())
    return [*pip, *BUILD_TOOLS, *package.build_requirements, *package.requirements, *pure]


if __name__ == "__main__":
    (ROOT / "wheelhouse").mkdir(exist_ok=True)
    raise SystemExit(subprocess.run(command(Path(sys.argv[1])), check=False).returncode)
