# SPDX-License-Identifier: BSD-3-Clause
"""Reports of tests whose process ended before it could report."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from .forks import Lost

_CALLERS = re.compile(r"in (pytest_pyfunc_call|call_fixture_func|runtest|teardown_exact)$")


def reports(
    item: pytest.Item, before: list[pytest.TestReport], lost: Lost, captured: dict[str, str], begun: float
) -> list[pytest.TestReport]:
    """The failure of the phase in which the worker was lost, and the end of the test, which every reporter awaits."""
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
    """The report of a phase: that it failed, with this text, or that it passed."""
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed" if text else "passed",
        longrepr=text or None,
        when=when,
    )


def explain(failure: pytest.TestReport, title: str, text: str) -> None:
    """Adds to a failed report: the title to its one line, the text to its end."""
    longrepr: Any = failure.longrepr
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = f"{title}: {crash.message}"
    if hasattr(longrepr, "addsection"):
        longrepr.addsection(title, text)
    else:
        failure.longrepr = f"{title}: {longrepr}\n\n{text}"


def _is_expected(item: pytest.Item) -> bool:
    """Whether the test may fail in any way, by its mark xfail."""
    from _pytest.skipping import evaluate_xfail_marks

    expected = None if item.config.option.runxfail else evaluate_xfail_marks(item)
    return expected is not None and expected.raises is None


def _own_part(output: str) -> str:
    """A stack without the calls that lead to the test: those of pytest and of this package."""
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
