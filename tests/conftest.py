# SPDX-License-Identifier: BSD-3-Clause
"""Makes tools/ importable, and copies the repository for tests that change it."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

# The tests of combinations, of ONNX and of libraries need the packages: they run in the environments of the sessions of
# the same names. Those of the recipe need a copy of a package, which `nox -s recipe` makes.
NEEDS = {
    **dict.fromkeys(("subsets", "onnx", "libraries"), "OPENREG_TEST_SESSION"),
    "recipe": "OPENREG_TEST_RECIPE",
}
collect_ignore = [folder for folder, variable in NEEDS.items() if not os.environ.get(variable)]


@pytest.fixture(scope="session")
def copied(tmp_path_factory):
    """A copy of the repository, as a repository of its own; tests use `checkout`."""
    from tools.sessions.copies import copy_repository

    root = tmp_path_factory.mktemp("copied") / "repository"
    copy_repository(root)
    return root


@pytest.fixture
def checkout(copied):
    """A copy of the repository to change: what other tests did to it is undone."""
    from tools.packages import git

    git(copied, "clean", "--quiet", "--force", "-dx")
    git(copied, "checkout-index", "--all", "--force")
    return copied
