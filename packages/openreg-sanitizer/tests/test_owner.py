# SPDX-License-Identifier: BSD-3-Clause
"""A report tells the lines of a program from those of libraries, torch and Python."""

import os
from pathlib import Path

import pytest
import torch

from openreg_sanitizer.finding import owner_of

HERE = Path.cwd()


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        (HERE / "train.py", "program"),
        (pytest.__file__, "library"),
        # of other environments than the one that runs, such as the user's and the system's
        (HERE / "lib" / "python3" / "site-packages" / "timm" / "loader.py", "library"),
        (HERE / "lib" / "python3" / "dist-packages" / "timm" / "loader.py", "library"),
        (HERE / "site-packages-of-mine" / "train.py", "program"),
        (torch.nn.__file__, "torch"),
        (os.__file__, "standard"),
        ("<frozen runpy>", "standard"),
    ],
)
def test_to_whom_a_line_belongs(file, owner):
    assert owner_of(str(file)) == owner
