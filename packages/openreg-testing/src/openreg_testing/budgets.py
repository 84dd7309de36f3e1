# SPDX-License-Identifier: BSD-3-Clause
"""How many kernels and copies a piece of code launches, or may: contexts, and the mark ``launch_budget`` for a test.

Launches are what an eager program waits for; a change that makes two of one is noticed here and by no result.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from dataclasses import dataclass

import pytest

from openreg_testing.devices import Backend, Counts, accelerator_type
from openreg_testing.usage import RECORD, shown

__tracebackhide__ = True  # pytest's name for frames that no report shows

_MARK = (
    "launch_budget(launches, copies=None): the test fails if it launches more kernels than this on the device, or "
    "copies more often"
)


def launch_budget(launches: int, *, copies: int | None = None, device: str = "") -> _Budget:
    """A context that raises AssertionError at its end if its code launched more than that on all devices of a type.

    ``launches`` is the most kernels, ``copies`` the most copies, from and to the host included; None is any number.
    ``device`` is the type, by default that of the current accelerator. Waits for the devices at both ends; an error of
    theirs is raised. Raises RuntimeError where there is no such device, or where its backend does not count.
    """
    return _Budget(launches, copies, device)


class _Budget(ContextDecorator, AbstractContextManager[None]):
    """No generator: contextlib's frames would stand behind the line of the test, and reports name the last one."""

    def __init__(self, launches: int, copies: int | None, device: str) -> None:
        self._launches, self._copies, self._device = launches, copies, device
        self._counting: list[_Counting] = []  # of each time that it was entered

    def __enter__(self) -> None:
        self._counting.append(_Counting(_backend(self._device)))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        excess = self._counting.pop().excess(self._launches, self._copies) if kind is None else ""
        if excess:
            raise AssertionError(excess)


@dataclass
class Launched:
    """What the code of ``count_launches()`` did, on all devices together; known when its context has ended."""

    launches: int | None = None
    copies: int | None = None


@contextmanager
def count_launches(*, device: str = "") -> Iterator[Launched]:
    """Counts the kernels and the copies that its code launches.

    ``device``, what is waited for and what is raised are as of ``launch_budget``.
    """
    counting, found = _Counting(_backend(device)), Launched()
    yield found
    counts = counting.so_far()
    found.launches, found.copies = counts.launches, counts.copies


def _backend(device: str) -> Backend:
    name = device or accelerator_type()
    if not name:
        raise RuntimeError("this process has no accelerator whose launches could be counted")
    return Backend(name)


class _Counting:
    """From its making on. Raises RuntimeError where that cannot be."""

    def __init__(self, backend: Backend) -> None:
        if why := backend.unknown.get("launches"):
            raise RuntimeError(f"launches cannot be counted on {backend.type}: {why}")
        self._backend = backend
        self._before = self._now()

    def _now(self) -> Counts:
        if error := self._backend.wait():
            raise RuntimeError(f"launches cannot be counted: the device failed: {error}")
        return self._backend.counts()

    def so_far(self) -> Counts:
        """What was launched, when the devices have done it."""
        return self._now().since(self._before)

    def excess(self, launches: int, copies: int | None) -> str:
        """What was too much, in words; empty if nothing was."""
        counts = self.so_far()
        limits = ((counts.launches, launches, "launches"), (counts.copies, copies, "copies"))
        found = [
            f"{count} {what}, and the budget is {most}"
            for count, most, what in limits
            if count is not None and most is not None and count > most
        ]
        return f"on {self._backend.type}: {'; '.join(found)}" if found else ""


def pytest_configure(config: pytest.Config) -> None:
    """Names the mark."""
    config.addinivalue_line("markers", _MARK)


def budget(item: pytest.Item) -> tuple[int, int | None] | None:
    """The launches and copies that a test may make; raises TypeError for a mark of another form."""
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
    """Counts what the test launches, and not what its fixtures do."""
    record, most = item.stash.get(RECORD, None), budget(item)
    if record is None or most is None:
        return (yield)
    try:
        counting = _Counting(record.backend)
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)
    outcome = yield
    if excess := counting.excess(*most):
        pytest.fail(f"{excess} (launch_budget)", pytrace=False)
    return outcome
