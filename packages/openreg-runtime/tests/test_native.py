# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs native/checks.cpp: what of the runtime library only C++ reaches."""

import sys
from pathlib import Path

from test_consumer import cmake, run, site_packages

PROJECT = Path(__file__).resolve().parent / "native"


def test_launches_and_memory_hold_what_the_headers_promise(tmp_path):
    status, output = cmake(
        *("-S", PROJECT, "-B", tmp_path, "-G", "Ninja"),
        f"-DCMAKE_PREFIX_PATH={site_packages()}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    assert status == 0, output
    status, output = cmake("--build", tmp_path)
    assert status == 0, output
    checks = run(tmp_path / "checks")
    assert (checks.returncode, checks.stderr) == (0, "")
    assert checks.stdout == "all checks hold\n"
