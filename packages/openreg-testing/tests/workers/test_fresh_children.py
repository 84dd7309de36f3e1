# SPDX-License-Identifier: BSD-3-Clause
"""Python programs that a forked program starts are forked, too, and behave as in a new interpreter."""

import os
import sys

import pytest
from _platform import HAS_FORK

from openreg_testing.workers.fresh_children import FreshFamily

pytestmark = pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
ENVIRONMENT["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
# Whether this process was forked: then parts of torch are there before torch is imported.
STATE = "print('torch' in sys.modules, 'torch.nn' in sys.modules)"


@pytest.fixture(scope="module")
def family():
    python = FreshFamily()
    yield python
    python.close()


def parent(child, options=(), **variables):
    """A program that starts another one and tells how it ended."""
    return f"""
import colorsys, os, subprocess, sys, own
command = [sys.executable, *{options!r}, "-c", {child!r}, "word"]
done = subprocess.run(command, capture_output=True, text=True, env={{**os.environ, **{variables!r}}})
print(done.returncode, done.stdout.split(), done.stderr.splitlines()[-1:])
"""


def run(family, folder, child, options=(), **variables):
    (folder / "own.py").write_text("", "utf-8")
    done = family.run("-c", parent(child, options, **variables), env=ENVIRONMENT, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_a_child_is_forked_and_keeps_nothing_of_the_program(family, tmp_path):
    child = f"import os, sys; {STATE}; print('own' in sys.modules, sys.argv[1:], os.environ['WORD']); sys.exit(7)"
    assert run(family, tmp_path, child, WORD="x") == "7 ['False', 'True', 'False', \"['word']\", 'x'] []"


def test_the_program_begins_without_torch_as_well(family, tmp_path):
    done = family.run("-c", f"import sys; {STATE}", env=ENVIRONMENT, folder=tmp_path)
    assert done.stdout.split() == ["False", "True"]


def test_a_child_that_raises_or_crashes_ends_as_one_of_its_own(family, tmp_path):
    assert run(family, tmp_path, "raise OSError('no')") == "1 [] ['OSError: no']"
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    told = run(family, tmp_path, crash, ("-X", "faulthandler"))
    assert told.startswith("-11 [] [")
    assert run(family, tmp_path, crash) == "-11 [] []"


@pytest.mark.parametrize(("options", "variables"), [(("-E",), {}), ((), {"OMP_NUM_THREADS": "1"})])
def test_what_a_fork_cannot_be_is_an_interpreter_of_its_own(family, tmp_path, options, variables):
    assert run(family, tmp_path, f"import sys; {STATE}", options, **variables) == "0 ['False', 'False'] []"


def test_backends_load_where_torch_is_imported_and_their_error_is_that_of_the_import(family, tmp_path):
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[torch.backends]\nbroken = broken:load\n", "utf-8")
    (tmp_path / "broken.py").write_text("def load(): raise OSError('no')\n", "utf-8")
    child = "print('begun')\ntry:\n    import torch\nexcept RuntimeError as error:\n    print(repr(error.__cause__))"
    told = run(family, tmp_path, child, TORCH_DEVICE_BACKEND_AUTOLOAD="1", PYTHONPATH=str(tmp_path))
    assert told == "0 ['begun', \"OSError('no')\"] []"
    assert run(family, tmp_path, f"import torch; {child}") == "0 ['begun'] []"


def test_another_torch_is_imported_as_python_finds_it(family, tmp_path):
    (tmp_path / "torch.py").write_text("print('another')\n", "utf-8")
    assert run(family, tmp_path, "import torch", PYTHONPATH=str(tmp_path)) == "0 ['another'] []"


def test_a_command_that_is_not_this_python_runs_as_it_is(family, tmp_path):
    done = family.run("-c", "import subprocess; subprocess.run(['echo', 'x'])", env=ENVIRONMENT, folder=tmp_path)
    assert done.stdout == "x\n"
    assert sys.executable not in done.stderr
