# SPDX-License-Identifier: BSD-3-Clause
"""Checks what a wheel says about itself, what it contains, and which shared libraries it needs.

check_wheels.py ROOT WHEEL...     needs the packages packaging, auditwheel (on Linux) and lief; prints what is wrong

Before it looks at the libraries it plants a needless one in a copy of a wheel, which auditwheel has to report.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata
from packaging.requirements import Requirement

# The repository's own modules, wherever this runs.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools._platform import IS_LINUX, LINUX_LIBRARY_SUFFIX
from tools.packages import Package, closure, discover

# Libraries of the torch wheel, which is always there before ours are loaded.
OF_TORCH = re.compile(rf"lib(c10|torch|torch_cpu|torch_python){re.escape(LINUX_LIBRARY_SUFFIX)}$")
SHARED_LIBRARY = re.compile(rf"{re.escape(LINUX_LIBRARY_SUFFIX)}(\.\d+)*$")
NEWEST_PYTHON = 14
PLANTED = "libplanted.so.7"


def wheel_of(package: Package, wheels: Iterable[Path]) -> Path:
    """The wheel of a package among several."""
    (wheel,) = (path for path in wheels if path.name.startswith(f"{package.name.replace('-', '_')}-"))
    return wheel


def read_metadata(archive: zipfile.ZipFile) -> Metadata:
    """What a wheel says about itself. Raises where it breaks a rule of PyPI."""
    (name,) = (item for item in archive.namelist() if item.endswith(".dist-info/METADATA"))
    return Metadata.from_email(archive.read(name), validate=True)


def metadata_problems(package: Package, wheel: Path) -> list[str]:
    """One line for each thing that users or PyPI expect of a wheel and that is not so."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        try:
            metadata = read_metadata(archive)
        except Exception as error:  # several come in a group, a type that Python 3.10 does not have
            reasons = getattr(error, "exceptions", (error,))
            return [f"{wheel.name}: {reason}" for reason in reasons]
    classifiers = set(metadata.classifiers or ())
    wanted = {f"Programming Language :: Python :: 3.{minor}" for minor in range(10, NEWEST_PYTHON + 1)}
    wanted |= {"Typing :: Typed", "Development Status :: 3 - Alpha"}
    readme = (package.folder / "README.md").read_text("utf-8")
    needed = {str(item) for item in metadata.requires_dist or () if "extra ==" not in str(item.marker)}
    checks = {
        f"the version is {metadata.version}, not {package.version}": str(metadata.version) == package.version,
        f"classifiers are missing: {sorted(wanted - classifiers)}": wanted <= classifiers,
        "the licence is not BSD-3-Clause with the file LICENSE": metadata.license_expression == "BSD-3-Clause"
        and any(name.endswith(".dist-info/licenses/LICENSE") for name in names),
        "the summary is missing": bool(metadata.summary),
        "the long description is not README.md": (metadata.description or "").strip() == readme.strip(),
        "the long description is not Markdown": (metadata.description_content_type or "").startswith("text/markdown"),
        f"{package.import_name}/py.typed is missing": f"{package.import_name}/py.typed" in names,
        f"it needs {sorted(needed)}, not {sorted(package.requirements)}": needed
        == {str(Requirement(item)) for item in package.requirements},
        "Requires-Python is not >=3.10": str(metadata.requires_python) == ">=3.10",
    }
    return [f"{wheel.name}: {problem}" for problem, holds in checks.items() if not holds]


def libraries_in(wheel: Path) -> set[str]:
    """The names of the shared libraries in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = (Path(name).name for name in archive.namelist())
        return {name for name in names if SHARED_LIBRARY.search(name)}


def library_problems(report: Mapping[str, Any], ours: set[str]) -> list[str]:
    """What is wrong with the report of `auditwheel show --json`, apart from torch's libraries and `ours`."""
    wheel = report["wheel"]
    if "error" in report:
        return [f"{wheel}: {report['error']}"]
    if report["pure"]:
        return []
    strange = [name for name in report["external_libs"] if name not in ours and not OF_TORCH.match(name)]
    problems = [f"{wheel}: needs {name}, which no Linux has to have and no wheel brings" for name in strange]
    problems += [f"{wheel}: {fault}" for fault in ("pyfpe", "ucs2", "unsupported_isa") if report[fault]]
    for policy, entry in report["policy_upgrades"].items():
        if "blacklisted_symbols" in entry:
            problems.append(f"{wheel}: {policy} forbids {entry['blacklisted_symbols']}")
    return problems


def audit(wheel: Path) -> dict[str, Any]:
    """The report of auditwheel."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", "--allow-pure-python-wheel", str(wheel)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if not result.stdout.strip():
        raise SystemExit(f"auditwheel has nothing to say about {wheel.name}:\n{result.stderr}")
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def plant(wheel: Path, folder: Path) -> Path:
    """A copy of a wheel, in `folder`, whose extension module needs a library that nobody has."""
    import lief

    copy = folder / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if "/_C." in name and SHARED_LIBRARY.search(name):
                binary = lief.parse(list(content))
                if not isinstance(binary, lief.ELF.Binary):
                    raise SystemExit(f"{wheel.name}: lief cannot read {name}")
                binary.add_library(PLANTED)
                module = folder / Path(name).name
                binary.write(str(module))
                content = module.read_bytes()
            target.writestr(name, content)
    return copy


def finds_planted(wheel: Path, ours: set[str]) -> bool:
    """Whether a needless library in a copy of the wheel is reported, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        problems = library_problems(audit(plant(wheel, Path(folder))), ours)
    return len(problems) == 1 and PLANTED in problems[0]


def main(root: str, *paths: str) -> int:
    """Prints what is wrong; 0 if nothing is."""
    packages = discover(Path(root))
    wheels = [Path(path) for path in paths]
    problems: list[str] = []
    for package in packages.values():
        wheel = wheel_of(package, wheels)
        problems += metadata_problems(package, wheel)
        if IS_LINUX:
            needed = (wheel_of(packages[name], wheels) for name in closure(package.name, packages))
            ours = {library for item in needed for library in libraries_in(item)}
            problems += library_problems(audit(wheel), ours)
            if libraries_in(wheel) and not finds_planted(wheel, ours):
                problems.append(f"{wheel.name}: a library planted in a copy was not reported")
    looked = "metadata and libraries" if IS_LINUX else "metadata (auditwheel reads libraries of Linux only)"
    print("\n".join(problems) or f"{looked} of {len(wheels)} wheels are as they should be")
    return 1 if problems or not wheels else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
