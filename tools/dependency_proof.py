# SPDX-License-Identifier: BSD-3-Clause
"""Proves that every dependency a package declares is needed: without it, the package's lane fails."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import nox
from packaging.requirements import Requirement

from tools.environments import Environments
from tools.lane import PYTEST, example_scripts, holds
from tools.packages import Package, closure, requirement_name
from tools.stopwatch import Stopwatch
from tools.wheelhouse import Wheelhouse

REQUIREMENT = "Requires-Dist:"


@dataclass(frozen=True)
class Removal:
    """One package and a distribution that it declares."""

    package: str
    dependency: str


def removals(packages: Mapping[str, Package]) -> Iterator[Removal]:
    """Every dependency that a package declares for this Python."""
    for package in packages.values():
        for item in map(Requirement, package.requirements):
            if item.marker is None or item.marker.evaluate():
                yield Removal(package.name, requirement_name(item.name))


def without(packages: Mapping[str, Package], removal: Removal) -> dict[str, Package]:
    """The packages as if one of them did not declare the dependency."""
    package = packages[removal.package]
    kept = tuple(item for item in package.requirements if requirement_name(item) != removal.dependency)
    return {**packages, package.name: replace(package, requirements=kept)}


def declares(line: str, dependency: str) -> bool:
    """Whether a line of METADATA asks for a distribution, other than for an extra."""
    header, _, requirement = line.partition(" ")
    wanted = header == REQUIREMENT and requirement_name(requirement) == dependency
    return wanted and "extra ==" not in requirement


def remove_dependency(wheel: Path, dependency: str, folder: Path) -> Path:
    """A copy of a wheel, in `folder`, that does not ask for the dependency.

    Raises ValueError where the wheel does not ask for it.
    """
    copy = folder / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(copy, "w") as target:
        (metadata,) = (name for name in source.namelist() if name.endswith(".dist-info/METADATA"))
        (record,) = (name for name in source.namelist() if name.endswith(".dist-info/RECORD"))
        before = source.read(metadata).decode()
        head, separator, description = before.partition("\n\n")
        lines = [line for line in head.split("\n") if not declares(line, dependency)]
        after = "\n".join(lines) + separator + description
        if after == before:
            raise ValueError(f"{wheel.name} does not ask for {dependency}")
        changed = {metadata: after, record: renew_record(source.read(record).decode(), metadata, after.encode())}
        for item in source.infolist():
            target.writestr(item, changed.get(item.filename, source.read(item)))
    return copy


def renew_record(record: str, name: str, content: bytes) -> str:
    """A RECORD in which one file has the digest and size of new content."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    line = f"{name},sha256={digest},{len(content)}"
    return "\n".join(line if old.startswith(f"{name},") else old for old in record.split("\n"))


def lane_fails(environments: Environments, packages: Mapping[str, Package], removal: Removal, wheel: Path) -> str:
    """What fails in the lane of the package when it is installed from this wheel; empty if nothing does."""
    label = f"{removal.package} without {removal.dependency}"
    name = removal.package
    environment = environments.create(label, [name], changed={name: wheel})
    expected = {item: environments.wheels[item] for item in closure(name, without(packages, removal))}
    if not holds(environment.folder, {**expected, name: wheel}):
        return "the environment does not hold the packages that it should"
    tests = packages[name].folder / "tests"
    # The quickest to find out comes first.
    for path in (tests / "test_isolation.py", tests):
        if not environment.passes(f"pytest {path.name}", *PYTEST, "--exitfirst", str(path)):
            return f"pytest {path.name}"
    for path in example_scripts(name):
        if not environment.passes(path.name, str(path)):
            return path.name
    return ""


def run_dependency_proof(
    session: nox.Session, wheelhouse: Wheelhouse, packages: Mapping[str, Package], stopwatch: Stopwatch
) -> None:
    """Removes each declared dependency in turn; fails the session where a lane does not mind."""
    environments = Environments(session, packages, wheelhouse, stopwatch)
    for name in packages:
        # What fails with all dependencies in place proves nothing.
        environment = environments.create(f"{name} as it is", [name])
        environment.run("pytest test_isolation.py", *PYTEST, str(packages[name].folder / "tests" / "test_isolation.py"))
    folder = Path(session.create_tmp()).resolve() / "wheels"
    folder.mkdir(exist_ok=True)
    needless = []
    for removal in removals(packages):
        wheel = remove_dependency(environments.wheels[removal.package], removal.dependency, folder)
        failed = lane_fails(environments, packages, removal, wheel)
        session.log(f"{removal.package} without {removal.dependency}: {failed or 'NOTHING'} fails")
        if not failed:
            needless.append(f"{removal.package} declares {removal.dependency} and its lane passes without it")
    if needless:
        session.error("; ".join(needless))
