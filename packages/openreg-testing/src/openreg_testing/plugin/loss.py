# SPDX-License-Identifier: BSD-3-Clause
"""Reports of tests whose process ended before it could report them."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from ..workers.forks import Lost

# Functions of pytest that call a test or a fixture. They and their callers are omitted from stacks.
_CALLERS = re.compile(r"in (pytest_pyfunc_call|call_fixture_func|runtest|teardown_exact)$")


def reports(
    item: pytest.Item, before: list[pytest.TestReport], lost: Lost, captured: dict[str, str], begun: float
) -> list[pytest.TestReport]:
    """Returns the failure of the phase in which the worker ended, and the teardown report that every reporter needs.

    ``before`` are the reports of earlier phases, and ``begun`` is the time at which the test began.
    """
    done = {each.when for each in before}
    when = "teardown" if "call" in done else "call" if "setup" in done else "setup"
    text = f"its process {lost.reason} in the {when} of the test"
    stack = _own_part(lost.output)
    failure = report(item, when, f"{text}\n\n{stack}" if stack else text)
    failure.sections += [(f"Captured {name} {when}", output) for name, output in captured.items()]
    failure.start, failure.stop = begun, time.time()
    failure.duration = failure.stop - begun
    if _is_expected(item):
        failure.outcome, failure.wasxfail = "skipped", text
    return [failure] if when == "teardown" else [failure, report(item, "teardown", "")]


def report(item: pytest.Item, when: Any, text: str) -> pytest.TestReport:
    """Returns a report of a phase, which failed with ``text``, or passed if ``text`` is empty."""
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed" if text else "passed",
        longrepr=text or None,
        when=when,
    )


def explain(failure: pytest.TestReport, title: str, text: str) -> None:
    """Adds ``title`` to the one-line message of a failed report, and ``text`` to its end."""
    longrepr: Any = failure.longrepr
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = f"{title}: {crash.message}"
    if hasattr(longrepr, "addsection"):
        longrepr.addsection(title, text)
    else:
        failure.longrepr = f"{title}: {longrepr}\n\n{text}"


def _is_expected(item: pytest.Item) -> bool:
    """Returns True if the mark xfail permits the test to fail in any way."""
    from _pytest.skipping import evaluate_xfail_marks

    expected = None if item.config.option.runxfail else evaluate_xfail_marks(item)
    return expected is not None and expected.raises is None


def _own_part(output: str) -> str:
    """Returns a stack without the calls of pytest and of this package that lead to the test."""
    lines = []
    skipping = False
    for line in output.splitlines():
        if not line.startswith("  File "):
            skipping = False
        elif _CALLERS.search(line):
            skipping = True
        if not skipping:
            lines.append(line)
    return "\n".join(lines).replace("Fatal Python error: Aborted\n\n", "")
