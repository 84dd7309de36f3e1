# SPDX-License-Identifier: BSD-3-Clause
"""The noxfile is loaded by a nox that was installed alone: what sessions use, they install themselves."""

import re
import subprocess
import sys

import pytest

import noxfile
from tools.packages import ROOT

MODULES = {"pyyaml": "yaml", "pyproject-metadata": "pyproject_metadata", "cogapp": "cogapp.cogapp"}
NEEDS = [re.match(r"[\w-]+", item)[0] for item in (*noxfile.LINT_NEEDS, *noxfile.EXCERPTS)]
# nox itself, what it needs, and what stands in for a module that newer interpreters bring.
INSTALLED_LATER = sorted(set(NEEDS) - {"nox", "packaging", "tomli"})


def load(*missing):
    """Loads the noxfile in a process where some modules are not there."""
    program = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); import noxfile"
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_it_needs_nothing_that_a_session_installs():
    done = load(*(MODULES.get(name, name.replace("-", "_")) for name in INSTALLED_LATER))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["nox", "packaging"])
def test_a_module_that_is_not_there_is_noticed(module):
    done = load(module)
    assert done.returncode != 0
    assert module in done.stderr
