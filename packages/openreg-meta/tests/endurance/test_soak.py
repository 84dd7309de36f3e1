# SPDX-License-Identifier: BSD-3-Clause
"""A short soak test passes and detects planted mistakes. `nox -s soak` runs the long one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.endurance

SOAK = Path(__file__).with_name("soak.py")


def soak(*arguments, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
    return subprocess.run(
        [sys.executable, str(SOAK), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**env, **variables},
    )


@pytest.mark.parametrize("variables", [{}, {"OPENREG_SCHEDULE_SEED": "1"}], ids=["free", "seeded"])
def test_eight_threads_lose_no_write_and_no_memory(variables):
    result = soak("--seconds", "3", **variables)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert "of 8 threads" in result.stdout


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("record_stream", "numbers are wrong"),
        ("wait", "numbers are wrong"),
        ("release", "bytes allocated"),
        ("end", "Timeout"),
    ],
)
def test_a_mistake_in_the_program_is_noticed(mistake, message):
    # Races show after a tenth of a second, and end the program.
    seconds = "1" if mistake in ("release", "end") else "20"
    result = soak("--seconds", seconds, "--grace", "4" if mistake == "end" else "60", "--leave-out", mistake)
    assert result.returncode == 1, result
    assert message in result.stderr
