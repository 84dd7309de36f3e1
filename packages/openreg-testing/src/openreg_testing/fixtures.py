# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for tests that take the device from the command line, and the device as PyTorch's default."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest

from openreg_testing.devices import accelerator_type, load_torch
from openreg_testing.options import settings
from openreg_testing.usage import RECORD

if TYPE_CHECKING:
    import torch

__tracebackhide__ = True  # pytest's name for frames that no report shows


def _name(config: pytest.Config) -> str:
    return settings(config).name or accelerator_type() or "cpu"


@pytest.fixture
def device(pytestconfig: pytest.Config) -> Iterator[torch.device]:
    """The device of --device, current while the test runs; without the option the accelerator, else the CPU."""
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
    """Two devices of that type, the one of --device first; the test is skipped where there is one."""
    torch = load_torch("the fixture two_devices")
    chosen = torch.device(_name(pytestconfig))
    count = 1 if chosen.type == "cpu" else torch.get_device_module(chosen).device_count()
    if count < 2:
        pytest.skip(f"needs two devices, and there is one of type {chosen.type}")
    first = chosen.index or 0
    return torch.device(chosen.type, first), torch.device(chosen.type, 1 if first == 0 else 0)


@pytest.fixture
def allow_sync(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[Any]]:
    """Makes contexts in which a test marked ``no_sync`` may wait for its results."""
    from contextlib import nullcontext

    record = request.node.stash.get(RECORD, None)
    if record is None or (waits := record.waits) is None:
        return nullcontext
    return lambda: waits.telling(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Makes the device PyTorch's default, fixtures included, where --default-device asks for it."""
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
