# SPDX-License-Identifier: BSD-3-Clause
"""A report tells the lines of a program from those of libraries, torch and Python."""

import os

import pytest
import torch

from openreg_sanitizer.finding import owner_of


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        (os.path.join(os.sep, "home", "user", "train.py"), "program"),
        (pytest.__file__, "library"),
        # of other environments than the one that runs: of the user, and of the system
        (
            os.path.join(os.sep, "home", "user", ".local", "lib", "python3", "site-packages", "timm", "loader.py"),
            "library",
        ),
        (os.path.join(os.sep, "usr", "lib", "python3", "dist-packages", "timm", "loader.py"), "library"),
        (os.path.join(os.sep, "home", "user", "site-packages-of-mine", "train.py"), "program"),
        (torch.nn.__file__, "torch"),
        (os.__file__, "standard"),
        ("<frozen runpy>", "standard"),
    ],
)
def test_to_whom_a_line_belongs(file, owner):
    assert owner_of(file) == owner
