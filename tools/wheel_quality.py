# SPDX-License-Identifier: BSD-3-Clause
"""What a wheel has to be before anybody gets it: complete, well described, and enough where nothing can be built."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import nox

from tools.environments import UV, Environments, python_of
from tools.lane import empty_directory, example_scripts
from tools.packages import ROOT, Package
from tools.stopwatch import Stopwatch
from tools.wheelhouse import Wheelhouse

PROGRAMS = (UV, "auditwheel>=6.8", "lief>=0.17", "packaging>=24.2", "twine>=6.1", "validate-pyproject[all]>=0.24")


def run_wheel_quality(
    session: nox.Session, wheelhouse: Wheelhouse, packages: Mapping[str, Package], stopwatch: Stopwatch
) -> None:
    """Checks the wheels of all packages, then installs and uses each on a machine without compiler and CMake."""
    with stopwatch.step(session.name, "install"):
        session.install(*PROGRAMS)
    environments = Environments(session, packages, wheelhouse, stopwatch)
    wheels = [str(path) for path in environments.wheels.values()]
    with stopwatch.step(session.name, "check"):
        session.run("validate-pyproject", *(str(item.folder / "pyproject.toml") for item in packages.values()))
        session.run("twine", "check", "--strict", *wheels)
        session.run("python", str(ROOT / "tools" / "check_wheels.py"), str(ROOT), *wheels)
    for name in packages:
        use_on_plain_machine(session, environments, stopwatch, name)


def use_on_plain_machine(session: nox.Session, environments: Environments, stopwatch: Stopwatch, name: str) -> None:
    """Installs a package and runs its examples with an empty PATH and no other variable of this process."""
    nothing = Path(session.create_tmp()).resolve() / "nothing"
    nothing.mkdir(exist_ok=True)
    # Without SYSTEMROOT, Windows starts no Python.
    variables = {key: os.environ[key] for key in ("SYSTEMROOT", "TEMP", "TMP") if key in os.environ}
    plain = {**variables, "PATH": str(nothing)}
    environment = environments.create(name, [name], extra="", variables=plain)
    check = str(ROOT / "tools" / "check_plain_machine.py")
    for path in example_scripts(name):
        with stopwatch.step(session.name, path.name), empty_directory(session):
            command = (str(python_of(environment.folder)), check, str(path))
            session.run(*command, env=plain, include_outer_env=False, external=True, silent=True)
