# SPDX-License-Identifier: BSD-3-Clause
"""Proves that these tests see this package and what it declares, and no other package of ours.

The same file stands in every package; it takes the name from the folder it lies in. In a lane of
nox the proof is exact. Elsewhere, in a developer's environment, further packages may be installed.
"""

import importlib.util
import os
import sysconfig
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

FOLDER = Path(__file__).resolve().parents[1]
IN_LANE = os.environ.get("OPENREG_TEST_LANE") == FOLDER.name


def normalised(name):
    return name.lower().replace("_", "-")


def installed():
    names = (normalised(item.metadata["Name"]) for item in metadata.distributions())
    return {name for name in names if name.startswith("openreg")}


def declared(name):
    """`name` and every openreg distribution that its installed metadata asks for."""
    found = {name}
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and normalised(requirement.name).startswith("openreg"):
            found |= declared(normalised(requirement.name))
    return found


def test_only_declared_packages_are_installed():
    expected = declared(FOLDER.name)
    if IN_LANE:
        assert installed() == expected
    else:
        assert installed() >= expected


def test_the_installed_package_is_the_one_imported():
    (source,) = (path for path in (FOLDER / "src").iterdir() if (path / "__init__.py").exists())
    spec = importlib.util.find_spec(source.name)
    assert spec is not None
    assert spec.origin is not None
    places = {source} if not IN_LANE else set()
    places |= {Path(sysconfig.get_path(key)) / source.name for key in ("purelib", "platlib")}
    assert Path(spec.origin).parent.resolve() in {path.resolve() for path in places}


def test_a_lane_works_outside_the_source_tree():
    inside = FOLDER.parents[1] in [Path.cwd(), *Path.cwd().parents]
    assert not (IN_LANE and inside)
