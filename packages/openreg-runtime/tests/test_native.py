# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs the programs in native/: what of the runtime library only C++ reaches."""

import sys
from pathlib import Path

import pytest
from test_consumer import cmake, run, site_packages

PROJECT = Path(__file__).resolve().parent / "native"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder with the programs."""
    folder = tmp_path_factory.mktemp("native")
    status, output = cmake(
        *("-S", PROJECT, "-B", folder, "-G", "Ninja"),
        f"-DCMAKE_PREFIX_PATH={site_packages()}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    assert status == 0, output
    status, output = cmake("--build", folder)
    assert status == 0, output
    return folder


def test_launches_and_memory_hold_what_the_headers_promise(programs):
    checks = run(programs / "checks")
    assert (checks.returncode, checks.stderr) == (0, "")
    assert checks.stdout == "all checks hold\n"


def test_pytorchs_interfaces_answer_in_cpp(programs):
    interfaces = run(programs / "interfaces")
    assert (interfaces.returncode, interfaces.stderr) == (0, "")
    assert interfaces.stdout == "all interfaces answer\n"
