# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for tests that take the device from the command line, and the hook of ``--default-device``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest

from openreg_testing.plugin.devices import accelerator_type, load_torch
from openreg_testing.plugin.options import settings
from openreg_testing.plugin.usage import USAGE

if TYPE_CHECKING:
    import torch

__tracebackhide__ = True  # pytest omits frames of this module from tracebacks


def _name(config: pytest.Config) -> str:
    return settings(config).name or accelerator_type() or "cpu"


@pytest.fixture
def device(pytestconfig: pytest.Config) -> Iterator[torch.device]:
    """Yields the device of --device, current while the test runs; without the option the accelerator, else the CPU."""
    torch = load_torch("the fixture device")
    chosen = torch.device(_name(pytestconfig))
    if chosen.type == "cpu":
        yield chosen
        return
    chosen = torch.device(chosen.type, chosen.index or 0)
    with torch.get_device_module(chosen).device(chosen):
        yield chosen


@pytest.fixture
def two_devices(pytestconfig: pytest.Config) -> tuple[torch.device, torch.device]:
    """Returns two devices of the type of --device, the device of --device first; skips the test if there is one."""
    torch = load_torch("the fixture two_devices")
    chosen = torch.device(_name(pytestconfig))
    count = 1 if chosen.type == "cpu" else torch.get_device_module(chosen).device_count()
    if count < 2:
        pytest.skip(f"needs two devices, and there is one of type {chosen.type}")
    first = chosen.index or 0
    return torch.device(chosen.type, first), torch.device(chosen.type, 1 if first == 0 else 0)


@pytest.fixture
def allow_sync(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[Any]]:
    """Returns a function that returns context managers in which a test marked ``no_sync`` may wait for its results."""
    from contextlib import nullcontext

    usage = request.node.stash.get(USAGE, None)
    if usage is None or (waits := usage.waits) is None:
        return nullcontext
    return lambda: waits.reporting_to(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Makes the device PyTorch's default device in a test and its fixtures, if --default-device is set."""
    given = settings(item.config)
    if not given.default_device:
        return (yield)
    import torch

    before = torch.get_default_device()
    torch.set_default_device(given.target)
    try:
        return (yield)
    finally:
        torch.set_default_device(None if before.type == "cpu" else before)
