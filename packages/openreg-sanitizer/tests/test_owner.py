# SPDX-License-Identifier: BSD-3-Clause
"""A report tells the lines of a program from those of libraries, torch and Python."""

import os
import sysconfig
from pathlib import Path

import pytest
import torch

from openreg_sanitizer.finding import owner_of, package_of

HERE = Path.cwd()


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        (HERE / "train.py", "program"),
        (pytest.__file__, "library"),
        # of other environments than the one that runs, such as the user's and the system's
        (HERE / "lib" / "python3" / "site-packages" / "timm" / "loader.py", "library"),
        (HERE / "lib" / "python3" / "dist-packages" / "timm" / "loader.py", "library"),
        (Path(sysconfig.get_path("scripts")) / "pytest", "library"),
        (HERE / "site-packages-of-mine" / "train.py", "program"),
        (torch.nn.__file__, "torch"),
        (os.__file__, "standard"),
        ("<frozen runpy>", "standard"),
    ],
)
def test_to_whom_a_line_belongs(file, owner):
    assert owner_of(str(file)) == owner


@pytest.mark.parametrize(
    ("file", "package"),
    [
        (pytest.__file__, "pytest"),
        (HERE / "lib" / "python3" / "site-packages" / "typing_extensions.py", "typing_extensions"),
        (Path(sysconfig.get_path("scripts")) / "pytest", "pytest"),
        (torch.nn.__file__, "torch"),
        (os.__file__, "Python"),
        ("<frozen runpy>", "Python"),
    ],
)
def test_the_package_of_a_line(file, package):
    assert package_of(str(file)) == package
