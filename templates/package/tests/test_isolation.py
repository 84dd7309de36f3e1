# SPDX-License-Identifier: BSD-3-Clause
"""Proves that these tests see this package and what it declares, and no other package of ours.

The same file stands in every package; it takes the name from the folder it lies in. In a session of
nox the proof is exact: OPENREG_TEST_SESSION names the packages that the environment was asked to hold.
Elsewhere, in a developer's environment, further packages may be installed.
"""

import ast
import importlib.util
import os
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.every_subset

FOLDER = Path(__file__).resolve().parents[1]
REQUESTED = os.environ.get("OPENREG_TEST_SESSION", "").split()
IN_LANE = bool(REQUESTED)


def normalized(name):
    return name.lower().replace("_", "-")


def installed():
    names = (normalized(item.metadata["Name"]) for item in metadata.distributions())
    return {name for name in names if name.startswith("openreg")}


def requirements(name, extras=()):
    """The distributions that the installed metadata of `name`, with these extras, asks for."""
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            yield normalized(requirement.name)


def optional(name):
    """The distributions that an extra of `name` asks for, that of the tests apart: imported where they are there."""
    extras = set(metadata.metadata(name).get_all("Provides-Extra") or ()) - {"test"}
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        if requirement.marker is not None and any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            yield normalized(requirement.name)


def declared(asked):
    """What pip was asked for, as "openreg-x" or "openreg-x[extra]", and every openreg distribution that this brings."""
    wanted = Requirement(asked)
    names = set(requirements(wanted.name, wanted.extras))
    return {wanted.name}.union(*(declared(item) for item in names if item.startswith("openreg")))


def imported(path):
    """The top-level modules that a Python file imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def installed_folder():
    (source,) = (path for path in (FOLDER / "src").iterdir() if (path / "__init__.py").exists())
    spec = importlib.util.find_spec(source.name)
    assert spec is not None
    assert spec.origin is not None
    return source, Path(spec.origin).parent


def test_only_declared_packages_are_installed():
    expected = set().union(*(declared(name) for name in REQUESTED or [FOLDER.name]))
    assert FOLDER.name in expected
    if IN_LANE:
        assert installed() == expected
    else:
        assert installed() >= expected


def test_every_package_that_is_imported_is_declared():
    _, folder = installed_folder()
    modules = {name for path in folder.rglob("*.py") for name in imported(path)}
    ours = {normalized(name) for name in modules if name.startswith("openreg_")}
    assert ours - {FOLDER.name} <= set(requirements(FOLDER.name))
    distributions = metadata.packages_distributions()
    providers = {normalized(item) for name in modules for item in distributions.get(name, ())}
    # What a declared package of ours brings need not be declared again.
    wanted = {item for name in declared(FOLDER.name) for item in requirements(name)}
    assert providers - {FOLDER.name} <= wanted.union(optional(FOLDER.name))


def test_the_installed_package_is_the_one_imported():
    source, folder = installed_folder()
    places = {source} if not IN_LANE else set()
    places |= {Path(sysconfig.get_path(key)) / source.name for key in ("purelib", "platlib")}
    assert folder.resolve() in {path.resolve() for path in places}


def test_a_lane_works_outside_the_source_tree():
    inside = FOLDER.parents[1] in [Path.cwd(), *Path.cwd().parents]
    assert not (IN_LANE and inside)
