# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long the wheel of each package takes to build from nothing, with the tools of an existing environment.

`nox -s bench -- --build-time` passes the interpreter of the environment in which nox builds the wheels. It contains
torch, CMake and ninja, and nox installs openreg-runtime, against which the other packages are compiled.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

from results import Family, amount

PACKAGES = Path(__file__).parents[1] / "packages"


def build(python: str, package: Path) -> float:
    """Returns the seconds of one build, whose files are deleted. Exits with advice if the build fails."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [
            *(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"),
            *("--no-cache-dir", "--wheel-dir", str(Path(folder, "wheels"))),
            *(f"--config-settings=build-dir={Path(folder, 'tree')}", str(package)),
        ]
        env = {**os.environ, "PATH": os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")])}
        env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
        begin = timeit.default_timer()
        if subprocess.run(command, env=env, check=False).returncode:
            needs = "torch, scikit-build-core, CMake, ninja and openreg-runtime"
            sys.exit(f"{package.name} does not build, see above; the environment of {python} has to hold {needs}")
        return timeit.default_timer() - begin


def measure(python: str) -> Family:
    """Builds each wheel once. Returns {wheel: {"openreg": [seconds]}}."""
    found: Family = {}
    for package in sorted(path.parent for path in PACKAGES.glob("*/pyproject.toml")):
        seconds = build(python, package)
        print(f"built {package.name} in {amount(seconds)}", flush=True)
        found[f"build {package.name}"] = {"openreg": [seconds]}
    return found


def main() -> None:
    """Measures and prints the build times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environment to build in")
    measure(parser.parse_args().python)


if __name__ == "__main__":
    main()
