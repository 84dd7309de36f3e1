# SPDX-License-Identifier: BSD-3-Clause
"""Imports the device with autocast rules and the compiler, because the test session has no autoload.

Code is generated anew in each run of the tests: a cache of Inductor's knows a package's version, and not its sources.
"""

import os
import shutil
import tempfile
import textwrap
from pathlib import Path

CACHE = tempfile.mkdtemp(prefix="openreg-compile-")
BEFORE = {name: os.environ.get(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "COMPILER_PATH")}
os.environ["TORCHINDUCTOR_CACHE_DIR"] = CACHE

# Each kernel is linked with torch, which takes GNU gold a third of the time that GNU ld takes. GCC looks there first.
if gold := shutil.which("ld.gold"):
    linker = Path(CACHE, "linker", "ld")
    linker.parent.mkdir()
    linker.symlink_to(gold)
    os.environ["COMPILER_PATH"] = str(linker.parent)

import pytest  # noqa: E402
import torch  # noqa: E402

import openreg_amp  # noqa: E402, F401
import openreg_compile  # noqa: E402, F401
from openreg_testing.fresh import FreshPython  # noqa: E402


@pytest.fixture(scope="session")
def interpreter():
    """Forks programs that begin with torch, and without the compiler."""
    started = FreshPython()
    yield started
    started.close()


@pytest.fixture
def python(interpreter):
    """Runs a program, with further environment variables."""

    def run(code, fresh=False, **environment):
        env = {**os.environ, **environment}
        return interpreter.run("-c", textwrap.dedent(code), env=env, timeout=280, fresh=fresh)

    return run


@pytest.fixture
def set_threads():
    """Sets the number of threads of the process, for one test."""
    threads = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(threads)


def pytest_collection_modifyitems(items):
    """A kernel that fails unnoticed fails the test that launched it, and no other."""
    for item in items:  # of the whole session, to which other folders may belong
        if Path(__file__).parent in item.path.parents:
            item.add_marker("sound_device")


def pytest_unconfigure():
    """After the last test."""
    for name, value in BEFORE.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    shutil.rmtree(CACHE, ignore_errors=True)
