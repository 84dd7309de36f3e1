# SPDX-License-Identifier: BSD-3-Clause
"""Tests the four combinations of editable and regular installs of openreg-runtime and openreg-ops."""

from __future__ import annotations

import nox

from tools.packages import ROOT
from tools.sessions.wheelhouse import Wheelhouse

RUNTIME = "openreg-runtime"
OPS = "openreg-ops"
# The forms of runtime and operators. Each pair differs from the one before in one package, to save installs. The first
# has the runtime in the form in which a build leaves it.
ORDER = (("regular", "regular"), ("regular", "editable"), ("editable", "editable"), ("editable", "regular"))


def run_combinations(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Installs runtime and ops in each combination and runs check_shared_state.py.

    Works in the build environment, because an editable install is a build, and the object files of the wheels are
    there. Leaves the environment with the regular runtime, as a build does.
    """
    packages = wheelhouse.packages
    wheelhouse.provide(session, [OPS])
    script = str(ROOT / "tools" / "sessions" / "check_shared_state.py")
    current: dict[str, str] = {}
    try:
        for forms in ORDER:
            wanted = dict(zip((RUNTIME, OPS), forms, strict=True))
            with wheelhouse.stopwatch.step(session.name, "runtime {}, ops {}".format(*forms)):
                for name, form in wanted.items():
                    if current.get(name) != form:
                        wheelhouse.install(session, packages[name], editable=form == "editable")
                        current[name] = form
                arguments = [f"{packages[name].import_name}={form}" for name, form in wanted.items()]
                wheelhouse.run_python(session, script, *arguments)
    finally:
        wheelhouse.uninstall(session, [OPS])
        wheelhouse.install(session, packages[RUNTIME], editable=False)
