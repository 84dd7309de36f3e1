# SPDX-License-Identifier: BSD-3-Clause
"""The option ``--sanitize``: a test fails if the package openreg-sanitizer finds a wrong use of memory in it.

Most findings are races: two tasks, or a task and the host, use the same memory, and nothing orders them. Such a finding
names the synchronization that is missing. The sanitizer observes the device from the first test to the last. A test
fails for the findings of its call, not for those of its fixtures.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator
from typing import Any

import pytest

from openreg_testing.plugin.options import SETTINGS

_SESSION = pytest.StashKey[Any]()


def _module(name: str) -> Any:
    return importlib.import_module(name)  # an optional package, which this one does not declare


def _wanted(config: pytest.Config) -> bool:
    given = config.stash.get(SETTINGS, None)
    return given is not None and given.sanitize


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Observes the device during all tests, because tests use memory that earlier tests or fixtures allocated."""
    if not _wanted(session.config):
        return (yield)
    with _module("openreg_sanitizer").sanitizer("collect") as observed:
        session.config.stash[_SESSION] = observed
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails a test that passed and in which the sanitizer found something."""
    if item.config.stash.get(_SESSION, None) is None:
        return (yield)
    with _module("openreg_sanitizer").sanitizer("collect") as observed:
        outcome = yield
    if observed.findings:
        pytest.fail("\n\n".join(map(_module("openreg_sanitizer.text").render, observed.findings)), pytrace=False)
    return outcome
