# SPDX-License-Identifier: BSD-3-Clause
"""What each test did on the device, and that its errors are its own.

The facts go with the test's report as ``user_properties`` called ``openreg.<fact>``, so that they pass through xdist
and forked workers, and into JUnit's XML.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from openreg_testing.devices import Backend, Counts, accelerator_type
from openreg_testing.options import CUDA_ASKED, settings
from openreg_testing.waits import HostWaits

__tracebackhide__ = True  # pytest's name for frames that no report shows

PREFIX = "openreg."
MARKS = ("no_fallback", "no_sync", "memory_limit", "check_leaks", "launch_budget", "sound_device")

RECORD = pytest.StashKey["Record"]()
CURRENT = pytest.StashKey["pytest.Item | None"]()  # of the config: the test that is watched now
_BACKEND = pytest.StashKey["Backend | None"]()
_LOST = pytest.StashKey[str]()


@dataclass
class Record:
    """A test in progress."""

    backend: Backend
    before: Counts
    waits: HostWaits | None  # None where nobody asks for them: looking for them costs each wait a warning
    failed: bool = False
    error: str = ""  # of the device
    facts: dict[str, Any] = field(default_factory=dict)  # what checks add


def facts_of(report: pytest.TestReport) -> Mapping[str, Any]:
    """What a report says of the device, without the prefix; empty for a test that was not watched."""
    found = ((name, value) for name, value in report.user_properties if name.startswith(PREFIX))
    return {name.removeprefix(PREFIX): value for name, value in found}


def shown(mark: pytest.Mark) -> str:
    """A mark as it was written."""
    arguments = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
    return f"{mark.name}({', '.join(arguments)})"


def backend(item: pytest.Item) -> Backend | None:
    """The devices that the test is watched on: those of --device, or the accelerator where a mark asks for one."""
    config = item.config
    target = settings(config).target.partition(":")[0]
    marked = not target and any(item.get_closest_marker(name) for name in MARKS)
    if target == "cpu" or not (target or marked):
        return None
    if _BACKEND not in config.stash:
        device_type = target or accelerator_type()
        config.stash[_BACKEND] = Backend(device_type) if device_type else None
    return config.stash[_BACKEND]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watches a test from its first fixture to the last."""
    devices = backend(item)
    if devices is None:
        return (yield)
    waits = HostWaits(item.path, item.config.rootpath) if _asks_for_waits(item) else None
    item.stash[RECORD] = Record(devices, devices.counts(), waits)
    devices.reset_peak()
    item.config.stash[CURRENT] = item
    try:
        if waits is None:
            return (yield)
        with devices.warning_of_waits(), waits.recording():
            return (yield)
    finally:
        item.config.stash[CURRENT] = None


def _asks_for_waits(item: pytest.Item) -> bool:
    return bool(settings(item.config).target) or item.get_closest_marker("no_sync") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Clears what a broken fixture left."""
    try:
        return (yield)
    except BaseException:
        if RECORD in item.stash:
            item.stash[RECORD].failed = True
            _look(item)
        raise


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Waits for the device, so that an error of the test's work is the test's."""
    try:
        outcome = yield
    except BaseException:
        if RECORD in item.stash:
            item.stash[RECORD].failed = True
            _look(item)
        raise
    _blame(item)
    return outcome


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """The same for fixtures; then puts down what the test did."""
    try:
        outcome = yield
        _blame(item)
        return outcome
    except BaseException:
        _look(item)
        raise
    finally:
        if RECORD in item.stash:
            _put_down(item, item.stash[RECORD])


def refuse_lost_device(item: pytest.Item) -> None:
    """Fails a test on a device that an earlier one has lost."""
    if _LOST in item.config.stash:
        pytest.fail(item.config.stash[_LOST], pytrace=False)


def _blame(item: pytest.Item) -> None:
    error = _look(item)
    if error:
        item.stash[RECORD].failed = True
        pytest.fail(f"the device failed in this test, at a line that had returned: {error}", pytrace=False)


def _look(item: pytest.Item) -> str:
    """Waits for the devices and clears their errors, which it returns, for the tests to come."""
    record = item.stash.get(RECORD, None) if _LOST not in item.config.stash else None
    error = record.backend.wait() if record is not None else ""
    if record is not None and error:
        record.error = error
        left = record.backend.recover()
        if left:
            item.config.stash.setdefault(
                _LOST,
                f"the device cannot be used since {item.nodeid}: {left}. No option of this process brings it back; "
                "run each test in a process of its own (--isolate), so that it costs that test alone.",
            )
    return error


def _put_down(item: pytest.Item, record: Record) -> None:
    counts, waits = record.backend.counts().since(record.before), record.waits
    facts: dict[str, Any] = {
        "device": record.backend.type,
        "launches": counts.launches,
        "copies": counts.copies,
        "bytes_copied": counts.bytes_copied,
        "fallbacks": counts.fallbacks,
        "waits": None if waits is None or "host waits" in record.backend.unknown else waits.total,
        "waits_of_library": None if waits is None else dict(waits.of_library) or None,
        "peak_bytes": record.backend.peak(),
        "error": record.error or None,
        "cuda": (CUDA_ASKED in item.config.stash and item.config.stash[CUDA_ASKED].take()) or None,
        **record.facts,
    }
    item.user_properties.extend((PREFIX + name, value) for name, value in facts.items() if value is not None)
