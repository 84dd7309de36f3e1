# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of a copy of the repository: for another release of PyTorch or its nightly build, and with new packages."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import nox
from nox.command import CommandFailed

from tools import torch_release
from tools.environments import session_variables
from tools.new_package import LONGEST_NAME
from tools.package_session import NOX
from tools.packages import ROOT, git, refuse
from tools.stopwatch import Stopwatch
from tools.wheelhouse import Wheelhouse

NIGHTLY = "nightly"
NIGHTLY_INDEX = "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/nightly/cpu"
CHANGES = Path("build", "interfaces.txt")
COMPARE = ("packages/openreg-doctor/tools/interfaces.py", "--compare")


def run_torch_sessions(session: nox.Session, sessions: Iterable[str], stopwatch: Stopwatch) -> None:
    """Builds every wheel against a release, and runs `sessions` on them, or the sessions that are named after it.

    All of them run; where one fails, the session ends with the hooks of that PyTorch that the record does not have.
    What is built stays in nox's folder, apart for each release: the next run compiles what changed.
    """
    target, *named = session.posargs or [torch_release.SUPPORTED[-1]]
    if target != NIGHTLY:
        torch_release.checked(target)
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
    """Returns what to read first where sessions failed: how the interfaces changed, then the names of the sessions."""
    interfaces = f"PyTorch's interfaces differ from interfaces.json:\n{changes}" if changes else ""
    return f"{interfaces}on torch {target} these sessions failed: {', '.join(failed)}"


def nightly_version(session: nox.Session) -> str:
    """The newest build on the package indexes, as "2.16.0.dev20261101+cpu"."""
    command = ("python", "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--pre", "--report", "-", "torch")
    report = str(session.run(*command, silent=True))
    (item,) = json.loads(report[report.index("{") :])["install"]
    version = str(item["metadata"]["version"])
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


def run_interfaces(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Prints how the torch of the build environment differs from the record, and leaves it in build/interfaces.txt."""
    version = wheelhouse.prepare(session)
    lines = str(session.run(str(wheelhouse.python(session)), *COMPARE, external=True, silent=True) or "").strip()
    session.log(lines or f"the interfaces of torch {version} are those of interfaces.json")
    page = wheelhouse.dist.parent / CHANGES
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"{lines}\n" if lines else "", "utf-8")


# Not the names that tests/test_new_package.py gives, which runs beside them.
NAME = "openreg-gauge"
# Made as well and only linted: lines that contain the name would be laid out in another way if they were too long.
LONG_NAME = "openreg-".ljust(LONGEST_NAME, "z")
DESCRIPTION = "A package made of the template, to see that it works"
NEEDS = ("openreg-ops",)


def run_template(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Makes packages, then runs the lint of the repository and the tests of one, and edits nothing else."""
    stopwatch = wheelhouse.stopwatch
    with stopwatch.step(session.name, "install"):
        session.install(NOX, "tomli")
    wheels = wheelhouse.provide(session, list(NEEDS))
    clone = Path(session.create_tmp()).resolve() / "repository"
    shutil.rmtree(clone, ignore_errors=True)  # that of an earlier run has its packages
    copy_repository(clone)
    # The copy has the same sources, so these are its wheels too.
    (clone / "dist").mkdir()
    for wheel in wheels.values():
        shutil.copy2(wheel, clone / "dist")
    # So is the environment that they are built in.
    shared = os.fspath(wheelhouse.cache(session).parent)
    env = session_variables([])
    with session.chdir(clone):
        with stopwatch.step(session.name, "make"):
            for name in (NAME, LONG_NAME):
                session.run("python", "-m", "tools.new_package", name, DESCRIPTION, env=env)
            session.run("python", "-m", "tools.providers", env=env)
            git(clone, "add", "--all")
        with stopwatch.step(session.name, "lint"):
            session.run("python", "-m", "nox", "--envdir", shared, "-s", "lint", env=env)
        with stopwatch.step(session.name, f"test-{NAME}"):
            session.run("python", "-m", "nox", "--envdir", shared, "-s", f"test-{NAME}", env=env)


def copy_repository(target: Path) -> None:
    """The files of the checkout, committed or not, as the first commit of a new repository."""
    shutil.rmtree(target / ".git", ignore_errors=True)
    copy_folder(ROOT, target, {})
    git(target, "init", "--quiet")
    git(target, "add", "--all")


def copy_folder(origin: Path, target: Path, changed: Mapping[str, str]) -> None:
    """The files of a folder that git knows or would, with other texts for those that `changed` names.

    A file that is what it was in an earlier copy keeps its time, and any other gets the present one. Builds that are
    kept beside the copy compare times: one of an object that was compiled from the earlier file has to be older.
    """
    names = git(origin, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    wanted = {target / name: (origin / name).read_bytes() for name in names if name and (origin / name).is_file()}
    wanted.update({target / name: text.encode() for name, text in changed.items()})
    for path in files(target):
        if path not in wanted:
            path.unlink()
    for path, content in wanted.items():
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if (source := origin / path.relative_to(target)).is_file():
                shutil.copymode(source, path)


def files(folder: Path) -> list[Path]:
    """Those of a copy, without what git keeps."""
    return [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts[:1]]
