# SPDX-License-Identifier: BSD-3-Clause
"""How attempts to use wheels beside another torch are judged."""

import sys
from pathlib import Path

import pytest

from tools import torch_mismatch
from tools.torch_mismatch import Attempt

REFUSED = "openreg-ops works with torch 2.13.*, but torch 2.15.0+cpu is installed. Run pip install 'torch==2.13.*'"


def judge(code, output, torch="2.15.0+cpu"):
    return torch_mismatch.problems([Attempt("import openreg_ops", code, output)], "2.13", torch)


def test_a_refusal_with_both_versions_and_the_command_is_right():
    assert judge(1, REFUSED) == []


def test_a_start_beside_the_right_torch_is_right():
    assert judge(0, "4.0", torch="2.13.1") == []


@pytest.mark.parametrize(
    ("code", "output", "said"),
    [
        (0, "4.0", "ended with 0"),
        (-11, REFUSED, "ended with -11"),
        (1, REFUSED.replace("2.13.*, but", "2.14.*, but"), "does not say 'works with torch 2.13.*'"),
        (1, REFUSED.replace("2.15.0+cpu", "another"), "does not say 'torch 2.15.0+cpu is installed'"),
        (1, REFUSED.replace("pip install", "pip"), "does not say 'pip install'"),
    ],
)
def test_a_start_a_crash_and_half_a_message_beside_another_torch_are_problems(code, output, said):
    (found,) = judge(code, output)
    assert said in found


def test_a_refusal_or_a_crash_beside_the_right_torch_is_a_problem():
    for code in (1, -6):
        (found,) = judge(code, "", torch="2.13.0")
        assert f"ended with {code}" in found


def test_a_process_that_a_signal_ends_is_told_from_a_refusal(tmp_path):
    script = "import os, signal; signal.raise_signal(signal.SIGTERM)"
    attempt = torch_mismatch.run(Path(sys.executable), tmp_path, "a crash", script, autoload=False)
    assert attempt.code not in (0, 1)


def test_the_release_of_wheels_is_in_their_names():
    names = ("openreg_ops-2.14.3-cp311-cp311-linux_x86_64.whl", "openreg_meta-2.14.0-py3-none-any.whl")
    assert torch_mismatch.release_of(map(Path, names)) == "2.14"


def test_a_mixture_takes_only_native_packages_above_the_runtime_from_the_other_release():
    names = ("openreg_amp", "openreg_meta", "openreg_ops", "openreg_runtime")
    own, other = ([Path(f"{name}-{release}.0-x.whl") for name in names] for release in ("2.13", "2.15"))
    mixed = [path.name for path in torch_mismatch.mixture(own, other)]
    assert mixed == [
        *("openreg_amp-2.15.0-x.whl", "openreg_meta-2.13.0-x.whl"),
        *("openreg_ops-2.15.0-x.whl", "openreg_runtime-2.13.0-x.whl"),
    ]
