# SPDX-License-Identifier: BSD-3-Clause
"""Checks that wheels say of themselves what pyproject.toml says, with README and licence.

check_wheels.py ROOT WHEEL...     needs the package pyproject-metadata; prints what is wrong
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from pyproject_metadata import StandardMetadata

# The repository's own modules, wherever this runs.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.packages import Package, discover, read_toml


def declared(package: Package) -> str:
    """What the wheel of a package has to say."""
    tables = read_toml(package.folder / "pyproject.toml")
    return str(StandardMetadata.from_pyproject(tables, project_dir=package.folder).as_rfc822())


def problems(package: Package, wheel: Path) -> list[str]:
    """One line for each thing in a wheel that is not so."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (item for item in archive.namelist() if item.endswith(".dist-info/METADATA"))
        said = archive.read(name).decode()
        licence = name.replace("METADATA", "licenses/LICENSE") in archive.namelist()
    found = [] if licence else [f"{wheel.name}: the licence is missing"]
    differing = set(said.splitlines()) ^ set(declared(package).splitlines())
    return found + [f"{wheel.name}: not as in pyproject.toml or README.md: {line}" for line in sorted(differing)]


def main(root: str, *paths: str) -> int:
    """Prints what is wrong; 0 if nothing is."""
    wheels = [Path(path) for path in paths]
    lines = []
    for package in discover(Path(root)).values():
        (wheel,) = (path for path in wheels if path.name.startswith(f"{package.name.replace('-', '_')}-"))
        lines += problems(package, wheel)
    print("\n".join(lines) or f"{len(wheels)} wheels say what they should")
    return 1 if lines or not wheels else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
