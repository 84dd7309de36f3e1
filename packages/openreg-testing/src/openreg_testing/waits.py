# SPDX-License-Identifier: BSD-3-Clause
"""Where the host waits for the device: the warnings of ``set_sync_debug_mode``, caught before anybody sees them.

No backend has a counter of host waits; openreg, CUDA and others warn of each. A filter in front of all others takes
these warnings: they reach neither the test's own ``pytest.warns`` nor a filter that makes them errors. Python asks the
filter while the frames that wait are on the stack, so each wait has a place. What this plug-in waits for, and what
pytest reads to print the values of a test that failed, is nobody's wait.
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

__tracebackhide__ = True  # pytest's name for frames that no report shows

_MESSAGE = re.compile(r"the host waits for a stream of an? \w+ device|called a synchronizing \w+ operation")
# Whose frames do not say who wanted the wait, at the top of their names of modules.
_CARRIERS = ("torch", "numpy", "openreg_testing", "openreg_runtime", "openreg_ops", "warnings", "contextlib", "_pytest")
# Whose frames say that nobody did: what prints values, and what calls hooks of pytest. All else of pytest carries, as
# does the part of this package through which a test's own calls go.
_OF_NOBODY = re.compile(r"(_pytest\.(assertion|_io|_code)|pluggy|unittest\.util|openreg_testing)(\.|$)")
_OF_CALLS = "openreg_testing.cuda_names"
_DOCTEST = "_pytest.doctest"  # whose examples have no frame of their own
TEST_FOLDERS = ("test", "tests", "testing")
_STANDARD = sysconfig.get_path("stdlib")

Place = tuple[str, int]  # file, line


class HostWaits:
    """The waits between ``recording()`` and its end, by place."""

    def __init__(self, test_file: Path, root: Path) -> None:
        self.of_tests: Counter[str] = Counter()
        self.of_library: Counter[str] = Counter()
        # Told the place, and whether it is the test's own; may raise what ends the operation that waited.
        self.on_wait: Callable[[str, bool], None] | None = None
        self._test_file = str(test_file)
        self._root = root

    @property
    def total(self) -> int:
        """All of them."""
        return self.of_tests.total() + self.of_library.total()

    # The method of a compiled regular expression, which Python's filters have in this place.
    def match(self, message: str) -> bool:
        """Takes the warning if it is one of a wait."""
        __tracebackhide__ = True
        if not _MESSAGE.match(message):
            return False
        place = _place(sys._getframe(1), self._test_file)
        if place is None:
            return True
        file, line = place
        shown = f"{self._relative(file)}:{line}"
        of_tests = self._is_of_tests(file)
        (self.of_tests if of_tests else self.of_library)[shown] += 1
        if self.on_wait is not None:
            self.on_wait(shown, of_tests)
        return True

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Takes the warnings of this context, whatever filters are added inside it."""
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
    def telling(self, listener: Callable[[str, bool], None] | None) -> Iterator[None]:
        """A context in which each wait is told to ``listener``, or to nobody."""
        before, self.on_wait = self.on_wait, listener
        try:
            yield
        finally:
            self.on_wait = before

    def _is_of_tests(self, file: str) -> bool:
        path = Path(file)
        if file == self._test_file or path.name == "conftest.py":
            return True
        return any(part in TEST_FOLDERS for part in Path(self._relative(file)).parts[:-1])

    def _relative(self, file: str) -> str:
        try:
            return Path(file).relative_to(self._root).as_posix()
        except ValueError:
            return file


def _filters() -> list[Any]:
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    return filters


def _put_first(entry: Any) -> None:
    filters = _filters()
    if not filters or filters[0] is not entry:
        filters[:] = [entry, *(item for item in filters if item is not entry)]


def _place(frame: FrameType | None, test_file: str) -> Place | None:
    """The innermost frame whose code wanted the wait, and not only carried it out; None where no code of a user did."""
    innermost: Place = ("unknown", 0)
    while frame is not None:
        name, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
        if name == _DOCTEST:
            return test_file, 0
        if _OF_NOBODY.match(name) and name not in (_OF_CALLS, __name__):
            return None
        if not file.startswith("<"):
            if innermost[1] == 0:
                innermost = (file, frame.f_lineno)
            if not carries(frame):
                return file, frame.f_lineno
        frame = frame.f_back
    return innermost


def carries(frame: FrameType) -> bool:
    """Whether a frame only carries out what its caller wants: of PyTorch, of Python's library, without a file."""
    name, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
    return file.startswith("<") or name.partition(".")[0] in _CARRIERS or _is_standard(file)


def _is_standard(file: str) -> bool:
    return file.startswith(_STANDARD + os.sep) and "site-packages" not in file
