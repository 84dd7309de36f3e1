# SPDX-License-Identifier: BSD-3-Clause
"""Each mistake on docs/operators/adding.md is refused with the quoted message, before an operator is called.

Each is made in the copy that `nox -s recipe` built: only the file that has it is compiled.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.pages.recipe import FOLDER, PAGE, Copy, is_said, mistakes, read

COPY = Copy(Path(os.environ[FOLDER]))
ALL = mistakes(PAGE.read_text("utf-8"))


@pytest.fixture
def mistaken():
    """Makes a mistake in the copy, which is then as it was before."""
    before = {}

    def make(addition):
        path = COPY.package / addition.path
        before[path] = read(path)
        path.write_text(addition.apply(before[path]), "utf-8")

    yield make
    for path, text in before.items():
        if text is None:
            path.unlink()
        else:
            path.write_text(text, "utf-8")


def imported():
    """What Python says when it imports the module that was built last."""
    site = COPY.folder / "mistaken"
    COPY.install(site)
    for module in COPY.build.glob("_C*"):
        if module.is_file():
            shutil.copy(module, site / "openreg_ops")
    env = {**os.environ, "PYTHONPATH": str(site), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, "-c", "import openreg_ops"], env=env, capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode == 1 else f"ended with {done.returncode}: {done.stderr}"


def test_the_page_shows_the_four_kinds():
    said = "\n".join(mistake.said for mistake in ALL)
    for words in ("twice", "which PyTorch does not have", "is not a member", "no matching function", "not listed in"):
        assert words in said


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.said[:40])
def test_a_mistake_is_refused_in_the_words_of_the_page(mistake, mistaken):
    mistaken(mistake.addition)
    done = COPY.compile()
    output = done.stdout
    if mistake.said.startswith("ImportError"):
        assert done.returncode == 0, output
        output = imported()
    else:
        assert done.returncode != 0
    assert is_said(mistake.said, output), output
