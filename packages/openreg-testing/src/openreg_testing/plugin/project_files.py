# SPDX-License-Identifier: BSD-3-Clause
"""The source files of the project under test: which of them belong to tests, and how reports name them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

_TEST_FOLDERS = ("test", "tests", "testing")


class ProjectFiles:
    """The files below the folder ``root``; ``test_files`` are the patterns of pytest's setting ``python_files``."""

    def __init__(self, root: Path, test_files: Sequence[str]) -> None:
        self._root = root
        self._test_files = tuple(test_files)

    @staticmethod
    def of(config: pytest.Config) -> ProjectFiles:
        """Returns those of a run."""
        return ProjectFiles(config.rootpath, config.getini("python_files"))

    def is_of_tests(self, file: str) -> bool:
        """Returns True for a file of tests, a ``conftest.py``, and each file in a folder of tests."""
        path = Path(file)
        if path.name == "conftest.py" or any(fnmatch(path.name, pattern) for pattern in self._test_files):
            return True
        return any(part in _TEST_FOLDERS for part in Path(self.relative(file)).parts[:-1])

    def is_of_library(self, file: str) -> bool:
        """Returns True for a file of the project that belongs to no test and no installed package."""
        below = Path(self.relative(file))
        return not below.is_absolute() and "site-packages" not in below.parts and not self.is_of_tests(file)

    def relative(self, file: str) -> str:
        """Returns the path of a file from ``root``, or unchanged for a file outside of it."""
        try:
            return Path(file).relative_to(self._root).as_posix()
        except ValueError:
            return file
