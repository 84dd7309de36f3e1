# SPDX-License-Identifier: BSD-3-Clause
"""Creates packages from the template in a copy of the repository, and runs lint and the tests of one there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

from tools.new_package import LONGEST_NAME
from tools.packages import git
from tools.sessions.copies import copy_repository
from tools.sessions.environments import session_variables
from tools.sessions.package_session import NOX
from tools.sessions.wheelhouse import Wheelhouse

# Differs from the names in tests/tools/test_new_package.py, which may run at the same time.
NAME = "openreg-gauge"
# A second package, which is only linted: the formatter would break lines that the longest name makes too long.
LONG_NAME = "openreg-".ljust(LONGEST_NAME, "z")
DESCRIPTION = "A package made of the template, to see that it works"
NEEDS = ("openreg-ops",)


def run_template(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Creates packages from the template, then runs the repository's lint and the tests of one, without other edits."""
    stopwatch = wheelhouse.stopwatch
    with stopwatch.step(session.name, "install"):
        session.install(NOX, "tomli")
    wheels = wheelhouse.provide(session, list(NEEDS))
    clone = Path(session.create_tmp()).resolve() / "repository"
    shutil.rmtree(clone, ignore_errors=True)  # the copy of an earlier run contains its packages
    copy_repository(clone)
    # The copy has the same sources, so these are its wheels too.
    (clone / "dist").mkdir()
    for wheel in wheels.values():
        shutil.copy2(wheel, clone / "dist")
    # The environment in which wheels are built is shared, too.
    shared = os.fspath(wheelhouse.cache(session).parent)
    env = session_variables([])
    with session.chdir(clone):
        with stopwatch.step(session.name, "make"):
            for name in (NAME, LONG_NAME):
                session.run("python", "-m", "tools.new_package", name, DESCRIPTION, env=env)
            git(clone, "add", "--all")
        with stopwatch.step(session.name, "lint"):
            session.run("python", "-m", "nox", "--envdir", shared, "-s", "lint", env=env)
        with stopwatch.step(session.name, f"test-{NAME}"):
            session.run("python", "-m", "nox", "--envdir", shared, "-s", f"test-{NAME}", env=env)
