# SPDX-License-Identifier: BSD-3-Clause
"""Everything that the device promises: its own checks, the doctor, and the suites of the conformance kit."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHECKS = sorted(path.name for path in ROOT.glob("check*.py"))  # check_operators.py is one, if you have added it


def run(*command):
    """Run Python with a command, and show what it printed if it fails."""
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("check", CHECKS)
def test_the_checks_of_the_device_pass(check):
    run(check)


def test_the_doctor_finds_only_known_problems():
    lines = (ROOT / "tests" / "doctor.txt").read_text("utf-8").splitlines()
    ignored = [option for line in lines if not line.startswith("#") for option in ("--ignore", line)]
    run("-m", "openreg_doctor", "--device", "pocket", "--import", "torch_pocket", "--timeout", "600", *ignored)


def test_the_conformance_kit_finds_only_known_failures():
    suites = ("device", "guard", "streams", "events", "allocator", "generator", "serialization", "dlpack", "autocast")
    chosen = [option for suite in suites for option in ("--suite", suite)]
    run("-m", "openreg_testing", "conformance", "--manifest", "tests/conformance.toml", *chosen)
