# SPDX-License-Identifier: BSD-3-Clause
"""Installs what a package of this repository needs to be built without isolation, beside the pip that runs this.

usage: python tools/build_requirements.py packages/openreg-ops

For environments that another program makes, such as cibuildwheel; nox's own come from tools/wheelhouse.py. Wheels of
other packages of this repository are found in wheelhouse/, where `nox -s cibuildwheel` puts them; those without native
parts, which it does not build, are taken from their folders.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# The repository's own modules, wherever this runs.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.packages import BUILD_TOOLS, ROOT, closure, discover, read_package


def command(folder: Path) -> list[str]:
    """The call of pip for the package in a folder."""
    pip = [sys.executable, "-m", "pip", "install", "--find-links", str(ROOT / "wheelhouse")]
    package, packages = read_package(folder), discover(ROOT)
    needed = (packages[name].folder for name in closure(package.name, packages) if name != package.name)
    pure = (str(path) for path in needed if not (path / "CMakeLists.txt").is_file())
    return [*pip, *BUILD_TOOLS, *package.build_requirements, *pure]


if __name__ == "__main__":
    (ROOT / "wheelhouse").mkdir(exist_ok=True)
    raise SystemExit(subprocess.run(command(Path(sys.argv[1])), check=False).returncode)
