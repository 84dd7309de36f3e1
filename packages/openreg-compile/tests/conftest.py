# SPDX-License-Identifier: BSD-3-Clause
"""Brings up the device with autocast rules and the compiler: a lane has no autoload.

Code is generated anew in each run of the tests: a cache of Inductor's knows a package's version, and not its sources.
"""

import os
import shutil
import tempfile

CACHE = tempfile.mkdtemp(prefix="openreg-compile-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = CACHE

import pytest  # noqa: E402
import torch  # noqa: E402

import openreg_amp  # noqa: E402, F401
import openreg_compile  # noqa: E402, F401


@pytest.fixture
def set_threads():
    """Sets the number of threads of the process, for one test."""
    threads = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(threads)


def pytest_collection_modifyitems(items):
    """A kernel that fails unnoticed fails the test that launched it, and no other."""
    for item in items:
        item.add_marker("sound_device")


def pytest_unconfigure():
    """After the last test."""
    shutil.rmtree(CACHE, ignore_errors=True)
