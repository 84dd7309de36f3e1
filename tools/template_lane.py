# SPDX-License-Identifier: BSD-3-Clause
"""Makes a package of the template in a copy of the repository, and runs what any package has to pass there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

from tools.affected import git
from tools.lane import lane_variables
from tools.repository_copy import copy_repository
from tools.stopwatch import Stopwatch
from tools.wheelhouse import Wheelhouse

NAME = "openreg-tally"
DESCRIPTION = "A package made of the template, to see that it works"
NEEDS = ("openreg-ops",)


def run_template(session: nox.Session, wheelhouse: Wheelhouse, stopwatch: Stopwatch) -> None:
    """Makes the package, then runs its linters, the repository's checks and its lane, and edits nothing else."""
    with stopwatch.step(session.name, "install"):
        session.install("nox>=2024.10.9", "pre-commit>=4", "pytest>=8.3", "pytest-timeout>=2.3", "tomli")
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
            session.run("python", "-m", "tools.new_package", NAME, DESCRIPTION, env=env)
            git(clone, "add", "--all")
        made = git(clone, "ls-files", "-z", f"packages/{NAME}", f"examples/{NAME}.py").split("\0")
        with stopwatch.step(session.name, "lint"):
            session.run("pre-commit", "run", "--show-diff-on-failure", "--files", *filter(None, made), env=env)
            session.run("python", "-m", "pytest", "-p", "no:cacheprovider", "tests/test_repo_checks.py", env=env)
        with stopwatch.step(session.name, f"test-{NAME}"):
            session.run("python", "-m", "nox", "--envdir", shared, "-s", f"test-{NAME}", env=env)
