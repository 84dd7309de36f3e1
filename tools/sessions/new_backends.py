# SPDX-License-Identifier: BSD-3-Clause
"""Creates backends by `python -m openreg_doctor new`, installs each as its README says, and runs its tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

from tools.sessions.wheelhouse import Wheelhouse

# Package, device and step: the first step that is offered, the one that is the default, and the last.
BACKENDS = (("borealis_backend", "borealis", 3), ("torch-aurora", "aurora", 7), ("torch-zephyr", "zephyr", 9))
WITH_OPERATORS = "torch-zephyr"  # gets the operators of each kind, too, whose check is then one of its tests
NEEDS = ("openreg-doctor", "openreg-testing")
TUTORIAL = "torch-pocket"  # PyTorch has room for one backend, and the tutorial's may be installed


def run_new_backends(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Creates, installs and tests each backend, in an environment that has torch and the build tools."""
    stopwatch = wheelhouse.stopwatch
    wheels = wheelhouse.provide(session, list(NEEDS))
    with stopwatch.step(session.name, "install for new backends"):
        session.install(*(str(wheels[name]) for name in NEEDS))
    for package, device, step in BACKENDS:
        folder = Path(session.create_tmp()).resolve() / package
        shutil.rmtree(folder, ignore_errors=True)
        with stopwatch.step(session.name, package):
            session.run("python", "-m", "pip", "uninstall", "--yes", TUTORIAL, *(name for name, _, _ in BACKENDS))
            new = ("python", "-m", "openreg_doctor", "new", package, "--device", device, "--step", str(step))
            session.run(*new, "--folder", str(folder))
            if package == WITH_OPERATORS:
                session.run("python", "-m", "openreg_doctor", "operators", str(folder))
            with session.chdir(folder):
                session.run("python", "-m", "pip", "install", "--no-build-isolation", "--no-deps", ".")
                # With -c and --rootdir, as the folder lies in this repository, whose settings are others.
                session.run("python", "-m", "pytest", "-c", "pyproject.toml", "--rootdir", ".", "tests")
