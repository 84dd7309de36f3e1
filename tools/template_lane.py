# SPDX-License-Identifier: BSD-3-Clause
"""Makes a package of the template in a copy of the repository, and runs what any package has to pass there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

from tools.affected import git
from tools.lane import lane_variables
from tools.new_package import LONGEST_NAME
from tools.repository_copy import copy_repository
from tools.wheelhouse import Wheelhouse

# Not the names that tests/test_new_package.py gives, which runs beside them.
NAME = "openreg-gauge"
# Made as well and only linted: lines that contain the name would be laid out in another way if they were too long.
LONG_NAME = "openreg-".ljust(LONGEST_NAME, "z")
DESCRIPTION = "A package made of the template, to see that it works"
NEEDS = ("openreg-ops",)


def run_template(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Makes packages, then runs the lint of the repository and one's lane, and edits nothing else."""
    stopwatch = wheelhouse.stopwatch
    with stopwatch.step(session.name, "install"):
        session.install("nox>=2024.10.9", "tomli")
    wheels = wheelhouse.provide(session, list(NEEDS))
    clone = Path(session.create_tmp()).resolve() / "repository"
    copy_repository(clone)
    # The copy has the same sources, so these are its wheels too.
    (clone / "dist").mkdir()
    for wheel in wheels.values():
        shutil.copy2(wheel, clone / "dist")
    # So is the environment that they are built in.
    shared = os.fspath(wheelhouse.cache(session).parent)
    env = lane_variables([])
    with session.chdir(clone):
        with stopwatch.step(session.name, "make"):
            for name in (NAME, LONG_NAME):
                session.run("python", "-m", "tools.new_package", name, DESCRIPTION, env=env)
            session.run("python", "-m", "tools.hooks", env=env)
            git(clone, "add", "--all")
        with stopwatch.step(session.name, "lint"):
            session.run("python", "-m", "nox", "--envdir", shared, "-s", "lint", env=env)
        with stopwatch.step(session.name, f"test-{NAME}"):
            session.run("python", "-m", "nox", "--envdir", shared, "-s", f"test-{NAME}", env=env)
