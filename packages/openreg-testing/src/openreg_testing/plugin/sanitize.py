# SPDX-License-Identifier: BSD-3-Clause
"""The option ``--sanitize``: a test fails if the package openreg-sanitizer finds a wrong use of memory in it.

Most findings are races: two tasks, or a task and the host, use the same memory, and nothing orders them. Such a finding
names the synchronization that is missing. The sanitizer observes the device from the first test to the last. A test
fails for the findings of its call, not for those of its fixtures. The summary of all tests groups the findings by what
is missing. pytest's option ``--full-trace`` shows whole stacks.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator
from typing import Any

import pytest

from openreg_testing.plugin import loss
from openreg_testing.plugin.options import SETTINGS
from openreg_testing.plugin.usage import USAGE

_SESSION = pytest.StashKey[Any]()
_FOUND = pytest.StashKey[str]()  # in the item's stash: the findings of a test that failed for another reason


def _module(name: str) -> Any:
    return importlib.import_module(name)  # an optional package, which this one does not declare


def _wanted(config: pytest.Config) -> bool:
    given = config.stash.get(SETTINGS, None)
    return given is not None and given.sanitize


def _text(item: pytest.Item, observed: Any) -> str:
    """Returns the text of the findings; its first line, which pytest repeats at the end, is about the first of them."""
    findings = observed.findings
    if not findings:
        return ""
    text = _module("openreg_sanitizer.text")
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    rendered = [text.render(finding, whole_stacks=item.config.option.fulltrace) for finding in findings]
    return "\n\n".join([text.headline(findings[0]) + more, *rendered])


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Observes the device during all tests, because tests use memory that earlier tests or fixtures allocated."""
    if not _wanted(session.config):
        return (yield)
    observed = session.config.stash[_SESSION] = _module("openreg_sanitizer").sanitizer("collect")
    observed.begin_at_first_use()  # after the fork of the process whose children run isolated tests
    try:
        return (yield)
    finally:
        observed.__exit__(None, None, None)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails a test that passed and in which the sanitizer found something."""
    if item.config.stash.get(_SESSION, None) is None:
        return (yield)
    observed = _module("openreg_sanitizer").sanitizer("collect")
    try:
        with observed:
            outcome = yield
    except BaseException:
        item.stash[_FOUND] = _text(item, observed)
        raise
    finally:
        _add_facts(item, observed.findings)
    if observed.findings:
        pytest.fail(_text(item, observed), pytrace=False)
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Adds the findings to the report of a test that failed for another reason: a race is often that reason."""
    report = yield
    found = item.stash.get(_FOUND, "")
    if found and call.when == "call" and report.failed:
        loss.explain(report, "openreg-sanitizer", found)
    return report


def _add_facts(item: pytest.Item, findings: list[Any]) -> None:
    """Adds what the test lacks to its facts, also if it failed for another reason."""
    headline = _module("openreg_sanitizer.text").headline
    for name, found in (
        ("missing_lines", [headline(finding) for finding in findings if finding.missing]),
        ("wrong_accesses", [headline(finding) for finding in findings if not finding.missing]),
    ):
        if found and USAGE in item.stash:
            item.stash[USAGE].facts[name] = list(dict.fromkeys(found))
