# SPDX-License-Identifier: BSD-3-Clause
"""Runs nox sessions in a copy of the repository that is for another release of PyTorch, or for its nightly build."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import nox
from nox.command import CommandFailed

from tools import torch_release
from tools.packages import refuse
from tools.sessions.copies import copy_repository
from tools.sessions.environments import session_variables
from tools.sessions.lock import lock
from tools.sessions.package_session import NOX
from tools.sessions.stopwatch import Stopwatch
from tools.sessions.wheelhouse import Wheelhouse

NIGHTLY = "nightly"
NIGHTLY_INDEX = "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/nightly/cpu"
CHANGES = Path("build", "interfaces.txt")
COMPARE = ("packages/openreg-doctor/tools/interfaces.py", "--compare")


def run_torch_sessions(session: nox.Session, sessions: Iterable[str], stopwatch: Stopwatch) -> None:
    """Builds every wheel against a release of PyTorch, and runs `sessions` on them.

    The session's first argument is the release or "nightly"; further arguments name other sessions to run. All of them
    run, even if one fails. Then this session fails, with the differences between the interfaces of that PyTorch and the
    record. What is built stays in nox's folder, separately for each release, so that the next run compiles only what
    changed.
    """
    target, *named = session.posargs or [torch_release.SUPPORTED[-1]]
    if target != NIGHTLY:
        torch_release.checked(target)
    lock(session.cache_dir)
    with stopwatch.step(session.name, "install"):
        session.install(NOX, "tomli")
    place = Path(session.cache_dir).resolve() / f"torch-{target}"
    copy = place / "repository"
    release, variables = target, session_variables([])
    if target == NIGHTLY:
        version = nightly_version(session)
        release = torch_release.release_of(version)
        variables |= allowing(version, place)
    with stopwatch.step(session.name, "copy"):
        copy_repository(copy)
        for path in torch_release.retarget(copy, release):
            session.log(f"for torch {release}: {path.relative_to(copy)}")

    def passes(name: str) -> bool:
        command = ("python", "-m", "nox", "--envdir", str(place / "environments"), "-s", name)
        with stopwatch.step(session.name, f"{name} on torch {target}"):
            try:
                session.run(*command, env=variables)
            except CommandFailed:
                return False
        return True

    with session.chdir(copy):
        if not passes("interfaces"):
            session.error(f"torch {release} cannot be installed here; the reason is above")
        failed = [name for name in named or sessions if not passes(name)]
    if failed:
        session.error(failure_summary(target, (copy / CHANGES).read_text("utf-8"), failed))


def failure_summary(target: str, changes: str, failed: list[str]) -> str:
    """Returns the text of the failure: the differences of the interfaces, then the names of the failed sessions."""
    interfaces = f"PyTorch's interfaces differ from interfaces.json:\n{changes}" if changes else ""
    return f"{interfaces}on torch {target} these sessions failed: {', '.join(failed)}"


def nightly_version(session: nox.Session) -> str:
    """Returns the version of the newest nightly build on the package indexes, such as "2.16.0.dev20261101+cpu".

    Ends the command if pip finds no nightly build.
    """
    command = ("python", "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--pre", "--report", "-", "torch")
    report = str(session.run(*command, silent=True))
    (item,) = json.loads(report[report.index("{") :])["install"]
    version = str(item["metadata"]["version"])
    if torch_release.release_of(version) in torch_release.SUPPORTED:
        refuse(f"the newest torch that pip finds is {version}, which is no nightly build; set {NIGHTLY_INDEX}")
    session.log(f"the nightly build is torch {version}")
    return version


def allowing(version: str, place: Path) -> dict[str, str]:
    """Returns the environment variables with which pip installs that build of torch, and no other pre-release."""
    place.mkdir(parents=True, exist_ok=True)
    constraints = place / "constraints.txt"
    constraints.write_text(f"torch=={version}\n", "utf-8")
    return {"PIP_CONSTRAINT": str(constraints)}


def run_interfaces(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Prints how the interfaces of the build environment's torch differ from the record.

    Writes the text to build/interfaces.txt, too.
    """
    version = wheelhouse.prepare(session)
    lines = str(session.run(str(wheelhouse.python(session)), *COMPARE, external=True, silent=True) or "").strip()
    session.log(lines or f"the interfaces of torch {version} are those of interfaces.json")
    page = wheelhouse.dist.parent / CHANGES
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"{lines}\n" if lines else "", "utf-8")
