# SPDX-License-Identifier: BSD-3-Clause
"""The source lines at which the host waits for the device, from the warnings of ``set_sync_debug_mode``.

No backend counts host waits, but openreg, CUDA and others warn of each. A warning filter in front of all others takes
these warnings. They reach neither ``pytest.warns`` in a test nor a filter that makes them errors. Python calls the
filter while the waiting frames are on the stack, so each wait has a place: a file and a line. Two kinds of waits are
not counted: those of this plug-in, and those in which pytest reads tensors to print the values of a failed test.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from openreg_testing.plugin.project_files import ProjectFiles

__tracebackhide__ = True  # pytest omits frames of this module from tracebacks

_MESSAGE = re.compile(r".*: the host waits here for a stream of \w+:\d+|called a synchronizing \w+ operation")
# Top-level packages whose frames are skipped, because a caller of theirs caused the wait.
_INTERNAL = ("torch", "numpy", "openreg_testing", "openreg_runtime", "openreg_ops", "warnings", "contextlib", "_pytest")
# Modules whose frames mean that no user code caused the wait: those that print values or call hooks of pytest. Other
# frames of pytest are skipped, and so are those of the module of this package through which calls of a test go.
_NO_USER_CODE = re.compile(r"(_pytest\.(assertion|_io|_code)|pluggy|unittest\.util|openreg_testing)(\.|$)")
_CALLS_OF_TESTS = "openreg_testing.plugin.cuda_names"
_DOCTEST = "_pytest.doctest"  # its examples have no frame in a file
_STANDARD = sysconfig.get_path("stdlib")

Place = tuple[str, int]  # file, line


class HostWaits:
    """The host waits in the contexts of ``recording()``, counted by place, as in "tests/test_a.py:12"."""

    def __init__(self, test_file: Path, files: ProjectFiles) -> None:
        self.of_tests: Counter[str] = Counter()
        self.of_library: Counter[str] = Counter()
        # Called with the place, and True if it is in a test. An exception that it raises ends the operation that waits.
        self.on_wait: Callable[[str, bool], None] | None = None
        self._test_file = str(test_file)
        self._files = files

    @property
    def total(self) -> int:
        """The number of all waits."""
        return self.of_tests.total() + self.of_library.total()

    # This object replaces the compiled regular expression of a warning filter, of which Python calls match().
    def match(self, message: str) -> bool:
        """Records the wait and returns True if the warning is one of a host wait."""
        __tracebackhide__ = True
        if not _MESSAGE.match(message):
            return False
        place = _place(sys._getframe(1), self._test_file)
        if place is None:
            return True
        file, line = place
        shown = f"{self._files.relative(file)}:{line}"
        of_tests = file == self._test_file or self._files.is_of_tests(file)
        (self.of_tests if of_tests else self.of_library)[shown] += 1
        if self.on_wait is not None:
            self.on_wait(shown, of_tests)
        return True

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Returns a context manager that takes the warnings of waits, whichever filters are added inside it."""
        entry: Any = ("ignore", self, UserWarning, None, 0)
        add = warnings._add_filter  # type: ignore[attr-defined]

        def add_behind(*item: Any, append: bool) -> None:
            add(*item, append=append)
            _put_first(entry)

        _put_first(entry)
        warnings._add_filter = add_behind  # type: ignore[attr-defined]
        try:
            yield
        finally:
            warnings._add_filter = add  # type: ignore[attr-defined]
            if entry in _filters():
                _filters().remove(entry)

    @contextmanager
    def reporting_to(self, listener: Callable[[str, bool], None] | None) -> Iterator[None]:
        """Returns a context manager in which ``listener`` is called for each wait; None calls nothing."""
        before, self.on_wait = self.on_wait, listener
        try:
            yield
        finally:
            self.on_wait = before


def _filters() -> list[Any]:
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    return filters


def _put_first(entry: Any) -> None:
    filters = _filters()
    if not filters or filters[0] is not entry:
        filters[:] = [entry, *(item for item in filters if item is not entry)]


def _place(frame: FrameType | None, test_file: str) -> Place | None:
    """Returns the place of the innermost frame of user code that caused the wait, or None if no user code did."""
    innermost: Place = ("unknown", 0)
    while frame is not None:
        name, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
        if name == _DOCTEST:
            return test_file, 0
        if _NO_USER_CODE.match(name) and name not in (_CALLS_OF_TESTS, __name__):
            return None
        if not file.startswith("<"):
            if innermost[1] == 0:
                innermost = (file, frame.f_lineno)
            if not is_internal(frame):
                return file, frame.f_lineno
        frame = frame.f_back
    return innermost


def is_internal(frame: FrameType) -> bool:
    """Returns True for a frame whose caller is responsible: without a file, of _INTERNAL or of Python's library."""
    name, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
    return file.startswith("<") or name.partition(".")[0] in _INTERNAL or _is_standard(file)


def _is_standard(file: str) -> bool:
    return file.startswith(_STANDARD + os.sep) and "site-packages" not in file
