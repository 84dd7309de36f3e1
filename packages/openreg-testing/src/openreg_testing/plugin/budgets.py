# SPDX-License-Identifier: BSD-3-Clause
"""Counts and limits of the kernels and copies that code launches: context managers, and the mark ``launch_budget``.

Launch overhead dominates the time of an eager program. A change that doubles the launches alters no result, so only a
count shows it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from dataclasses import dataclass

import pytest

from openreg_testing.plugin.devices import Counts, WatchedDevices, accelerator_type
from openreg_testing.plugin.usage import USAGE, shown

__tracebackhide__ = True  # pytest omits frames of this module from tracebacks

_MARK = (
    "launch_budget(launches, copies=None): the test fails if it launches more than this many kernels on the device, or "
    "more than this many copies"
)


def launch_budget(launches: int, *, copies: int | None = None, device: str = "") -> _Budget:
    """Returns a context manager that raises AssertionError at its end if its code launched more than the limits.

    ``launches`` is the maximum number of kernels, and ``copies`` that of copies, including copies from and to the host;
    None is no limit. Both count on all devices of the type ``device``, by default the current accelerator. The context
    synchronizes the devices at its start and end. It raises RuntimeError if a device has an error, if there is no such
    device, or if its backend does not count launches. It also works as a decorator.
    """
    return _Budget(launches, copies, device)


class _Budget(ContextDecorator, AbstractContextManager[None]):
    """The context manager of ``launch_budget``.

    It is not a generator, because reports name the innermost frame, and that would be one of contextlib instead of the
    test's.
    """

    def __init__(self, launches: int, copies: int | None, device: str) -> None:
        self._launches, self._copies, self._device = launches, copies, device
        self._counting: list[_Counting] = []  # one for each `with` statement that runs; they may be nested

    def __enter__(self) -> None:
        self._counting.append(_Counting(self._device, "launch_budget()"))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        counting = self._counting.pop()
        if kind is None and (excess := counting.excess(self._launches, self._copies)):
            raise AssertionError(excess)


@dataclass
class LaunchCounts:
    """The counts of ``count_launches()`` on all devices together; None until its context has ended."""

    launches: int | None = None
    copies: int | None = None


@contextmanager
def count_launches(*, device: str = "") -> Iterator[LaunchCounts]:
    """Returns a context manager that counts the kernels and the copies that its code launches.

    ``device``, synchronization and RuntimeError are as for ``launch_budget()``.
    """
    counting, found = _Counting(device, "count_launches()"), LaunchCounts()
    yield found
    counts = counting.so_far()
    found.launches, found.copies = counts.launches, counts.copies


class _Counting:
    """A count of launches since its creation, on the devices of the type ``device``, by default the accelerator's.

    Raises RuntimeError, with the name of the function that counts, if there is no such device, or if its backend does
    not count launches.
    """

    def __init__(self, device: str, function: str) -> None:
        name = device or accelerator_type()
        if not name:
            raise RuntimeError(
                f"{function}: launches cannot be counted: this process has no accelerator; import its backend first"
            )
        self._function = function
        self._devices = WatchedDevices(name)
        if why := self._devices.unknown.get("launches"):
            raise RuntimeError(f"{function}: launches cannot be counted on {name}: {why}")
        self._before = self._now()

    def _now(self) -> Counts:
        if error := self._devices.wait():
            raise RuntimeError(f"{self._function}: launches cannot be counted: the device failed: {error}")
        return self._devices.counts()

    def so_far(self) -> Counts:
        """Returns the counts since the creation, after synchronizing the devices."""
        return self._now().since(self._before)

    def excess(self, launches: int, copies: int | None) -> str:
        """Returns the exceeded limits in words; empty if none was exceeded."""
        counts = self.so_far()
        limits = ((counts.launches, launches, "launches"), (counts.copies, copies, "copies"))
        found = [
            f"{count} {what}, and the budget is {most}"
            for count, most, what in limits
            if count is not None and most is not None and count > most
        ]
        return f"on {self._devices.type}: {'; '.join(found)}" if found else ""


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line("markers", _MARK)


def budget(item: pytest.Item) -> tuple[int, int | None] | None:
    """Returns the limits of launches and copies of a test's mark, or None without the mark.

    Raises TypeError for a mark with invalid arguments.
    """
    mark = item.get_closest_marker("launch_budget")
    if mark is None:
        return None
    numbers = [*mark.args, *mark.kwargs.values()]
    if len(mark.args) != 1 or set(mark.kwargs) - {"copies"} or not all(_is_number(number) for number in numbers):
        raise TypeError(f"the mark is launch_budget(3) or launch_budget(3, copies=0), got {shown(mark)}")
    return mark.args[0], mark.kwargs.get("copies")


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Counts the launches of the test without its fixtures, and fails it if they exceed its budget."""
    usage, most = item.stash.get(USAGE, None), budget(item)
    if usage is None or most is None:
        return (yield)
    try:
        counting = _Counting(usage.devices.type, "the mark launch_budget")
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)
    outcome = yield
    if excess := counting.excess(*most):
        pytest.fail(f"{excess} (launch_budget)", pytrace=False)
    return outcome
