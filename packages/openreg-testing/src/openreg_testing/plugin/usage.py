# SPDX-License-Identifier: BSD-3-Clause
"""Facts about what each test did on the device, and attribution of device errors to the test that caused them.

Facts are recorded of *watched* tests: of all tests if --device or --cuda-as names an accelerator, and of those with one
of MARKS if the run names no device. The facts are ``user_properties`` of the test's report, named ``openreg.<fact>``.
Thus xdist and forked workers transfer them, and JUnit XML contains them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from openreg_testing.plugin.devices import Counts, WatchedDevices, accelerator_type
from openreg_testing.plugin.options import CUDA_USES, settings
from openreg_testing.plugin.project_files import ProjectFiles
from openreg_testing.plugin.waits import HostWaits

__tracebackhide__ = True  # pytest omits frames of this module from tracebacks

PREFIX = "openreg."
MARKS = ("no_fallback", "no_sync", "memory_limit", "check_leaks", "launch_budget", "sound_device")

USAGE = pytest.StashKey["DeviceUsage"]()
CURRENT = pytest.StashKey["pytest.Item | None"]()  # in the config's stash: the test that is being watched
_DEVICES = pytest.StashKey["WatchedDevices | None"]()
_LOST = pytest.StashKey[str]()  # the message for tests after the loss of the device


@dataclass
class DeviceUsage:
    """The measurements of a watched test while it runs."""

    devices: WatchedDevices
    before: Counts  # the counters when the test began
    waits: HostWaits | None  # None if not requested, because recording costs a warning for each wait
    failed: bool = False
    error: str = ""  # the device's error
    facts: dict[str, Any] = field(default_factory=dict)  # facts that checks add


def facts_of(report: pytest.TestReport) -> Mapping[str, Any]:
    """Returns the facts of a report, by names without the prefix; empty for a test that was not watched."""
    found = ((name, value) for name, value in report.user_properties if name.startswith(PREFIX))
    return {name.removeprefix(PREFIX): value for name, value in found}


def shown(mark: pytest.Mark) -> str:
    """Returns the source text of a mark with its arguments."""
    arguments = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
    return f"{mark.name}({', '.join(arguments)})"


def watched_devices(item: pytest.Item) -> WatchedDevices | None:
    """Returns the devices on which the test is watched, or None.

    They are the devices of --device, or the accelerator if a mark of the test requires one.
    """
    config = item.config
    target = settings(config).target.partition(":")[0]
    marked = not target and any(item.get_closest_marker(name) for name in MARKS)
    if target == "cpu" or not (target or marked):
        return None
    if _DEVICES not in config.stash:
        device_type = target or accelerator_type()
        config.stash[_DEVICES] = WatchedDevices(device_type) if device_type else None
    return config.stash[_DEVICES]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watches a test from its first fixture to the last."""
    devices = watched_devices(item)
    if devices is None:
        return (yield)
    waits = HostWaits(item.path, ProjectFiles.of(item.config)) if _needs_waits(item) else None
    item.stash[USAGE] = DeviceUsage(devices, devices.counts(), waits)
    devices.reset_peak()
    item.config.stash[CURRENT] = item
    try:
        if waits is None:
            return (yield)
        with devices.warning_of_waits(), waits.recording():
            return (yield)
    finally:
        item.config.stash[CURRENT] = None


def _needs_waits(item: pytest.Item) -> bool:
    return bool(settings(item.config).target) or item.get_closest_marker("no_sync") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Clears the device error of a fixture that failed."""
    try:
        return (yield)
    except BaseException:
        if USAGE in item.stash:
            item.stash[USAGE].failed = True
            _take_device_error(item)
        raise


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Synchronizes the devices after the test, so that an error of its tasks fails this test."""
    try:
        outcome = yield
    except BaseException:
        if USAGE in item.stash:
            item.stash[USAGE].failed = True
            _take_device_error(item)
        raise
    _fail_on_device_error(item)
    return outcome


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Synchronizes the devices after the teardown of fixtures, and then records the facts of the test."""
    try:
        outcome = yield
        _fail_on_device_error(item)
        return outcome
    except BaseException:
        _take_device_error(item)
        raise
    finally:
        if USAGE in item.stash:
            _add_facts(item, item.stash[USAGE])


def fail_if_device_lost(item: pytest.Item) -> None:
    """Fails the test if an earlier test left the device unusable."""
    if _LOST in item.config.stash:
        pytest.fail(item.config.stash[_LOST], pytrace=False)


def _fail_on_device_error(item: pytest.Item) -> None:
    """Synchronizes the devices, and fails the test if one has an error."""
    error = _take_device_error(item)
    if error:
        item.stash[USAGE].failed = True
        problem = f"the device failed in this test, after the call that caused it had returned: {error}"
        pytest.fail(problem, pytrace=False)


def _take_device_error(item: pytest.Item) -> str:
    """Synchronizes the devices and returns their error, empty without one; clears it for later tests."""
    usage = item.stash.get(USAGE, None) if _LOST not in item.config.stash else None
    error = usage.devices.wait() if usage is not None else ""
    if usage is not None and error:
        usage.error = error
        left = usage.devices.recover()
        if left:
            item.config.stash.setdefault(
                _LOST,
                f"the device cannot be used since {item.nodeid}: {left}. It cannot be recovered in this process; "
                "run each test in a separate process (--isolate), so that only that test fails.",
            )
    return error


def _add_facts(item: pytest.Item, usage: DeviceUsage) -> None:
    """Adds the facts of a test to the properties of its report."""
    counts, waits = usage.devices.counts().since(usage.before), usage.waits
    facts: dict[str, Any] = {
        "device": usage.devices.type,
        "launches": counts.launches,
        "copies": counts.copies,
        "bytes_copied": counts.bytes_copied,
        "fallbacks": counts.fallbacks,
        "waits": None if waits is None or "host waits" in usage.devices.unknown else waits.total,
        "waits_of_library": None if waits is None else dict(waits.of_library) or None,
        "peak_bytes": usage.devices.peak(),
        "error": usage.error or None,
        "cuda": (CUDA_USES in item.config.stash and item.config.stash[CUDA_USES].take()) or None,
        **usage.facts,
    }
    item.user_properties.extend((PREFIX + name, value) for name, value in facts.items() if value is not None)
