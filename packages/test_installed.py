# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the tests of a package import the installed packages, and not the sources beside them.

Sessions of nox run this file with the tests of each package (`tests_of` in tools/sessions/package_session.py), in the
same process, because a conftest.py or a setting of pytest may change where Python searches. Which packages are
installed is checked by the session itself.
"""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_subset

ROOT = Path(__file__).resolve().parents[1]
SITE = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}


def test_every_package_is_imported_from_the_environment() -> None:
    """Python finds each installed package of this repository in the environment."""
    installed = {path.parent.name: path for site in SITE for path in site.glob("*openreg*/__init__.py")}
    assert installed
    for name, path in installed.items():
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert path.samefile(str(spec.origin))


def test_the_tests_run_outside_of_the_repository() -> None:
    """The current directory, in which Python may search, contains nothing of the repository."""
    assert ROOT not in [Path.cwd(), *Path.cwd().parents]
