# SPDX-License-Identifier: BSD-3-Clause
"""The lanes of a copy of the repository that is made for another release of PyTorch, or for its nightly build."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import nox
from nox.command import CommandFailed

from tools import torch_release
from tools.lane import lane_variables
from tools.packages import refuse
from tools.repository_copy import copy_repository
from tools.stopwatch import Stopwatch
from tools.wheelhouse import Wheelhouse

NIGHTLY = "nightly"
NIGHTLY_INDEX = "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/nightly/cpu"
CHANGES = Path("build", "interfaces.txt")
COMPARE = ("packages/openreg-doctor/tools/interfaces.py", "--compare")


def run_torch_lanes(session: nox.Session, lanes: Iterable[str], stopwatch: Stopwatch) -> None:
    """Builds every wheel against a release, and runs `lanes` on them, or the sessions that are named after it.

    All of them run; where one fails, the session ends with what PyTorch asks for now that the record does not have.
    What is built stays in nox's folder, apart for each release: the next run compiles what changed.
    """
    asked, *named = session.posargs or [torch_release.SUPPORTED[-1]]
    if asked != NIGHTLY:
        torch_release.checked(asked)
    with stopwatch.step(session.name, "install"):
        session.install("nox>=2024.10.9", "tomli")
    place = Path(session.cache_dir).resolve() / f"torch-{asked}"
    copy = place / "repository"
    release, variables = asked, lane_variables([])
    if asked == NIGHTLY:
        version = nightly_version(session)
        release = torch_release.release_of(version)
        variables |= allowing(version, place)
    with stopwatch.step(session.name, "copy"):
        copy_repository(copy)
        for path in torch_release.retarget(copy, release):
            session.log(f"for torch {release}: {path.relative_to(copy)}")

    def passes(name: str) -> bool:
        command = ("python", "-m", "nox", "--envdir", str(place / "environments"), "-s", name)
        with stopwatch.step(session.name, f"{name} on torch {asked}"):
            try:
                session.run(*command, env=variables)
            except CommandFailed:
                return False
        return True

    with session.chdir(copy):
        if not passes("interfaces"):
            session.error(f"torch {release} cannot be installed here; the reason is above")
        failed = [name for name in named or lanes if not passes(name)]
    if failed:
        session.error(verdict(asked, (copy / CHANGES).read_text("utf-8"), failed))


def verdict(asked: str, changes: str, failed: list[str]) -> str:
    """What to read first where lanes failed: how the interfaces changed, then which lanes they are."""
    asks = f"PyTorch asks for this, and interfaces.json does not say so:\n{changes}" if changes else ""
    return f"{asks}on torch {asked} these sessions failed: {', '.join(failed)}"


def nightly_version(session: nox.Session) -> str:
    """The newest build on the package indexes, as "2.16.0.dev20261101+cpu"."""
    command = ("python", "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--pre", "--report", "-", "torch")
    version = newest(str(session.run(*command, silent=True)))
    if torch_release.release_of(version) in torch_release.SUPPORTED:
        refuse(f"the newest torch that pip finds is {version}, which is no nightly build; set {NIGHTLY_INDEX}")
    session.log(f"the nightly build is torch {version}")
    return version


def allowing(version: str, place: Path) -> dict[str, str]:
    """The environment variables with which pip takes that build of torch, and no pre-release of anything else."""
    place.mkdir(parents=True, exist_ok=True)
    constraints = place / "constraints.txt"
    constraints.write_text(f"torch=={version}\n", "utf-8")
    return {"PIP_CONSTRAINT": str(constraints)}


def newest(report: str) -> str:
    """The version in pip's report of what it would install."""
    (item,) = json.loads(report[report.index("{") :])["install"]
    return str(item["metadata"]["version"])


def run_interfaces(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Prints how the torch of the build environment differs from the record, and leaves it in build/interfaces.txt."""
    version = wheelhouse.prepare(session)
    lines = str(session.run(str(wheelhouse.python(session)), *COMPARE, external=True, silent=True) or "").strip()
    session.log(lines or f"torch {version} asks for what interfaces.json says")
    page = wheelhouse.dist.parent / CHANGES
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"{lines}\n" if lines else "", "utf-8")
