# SPDX-License-Identifier: BSD-3-Clause
"""``--openreg-report FILE``: one self-contained HTML file with what each test did on the device."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from openreg_testing.plugin import repeat
from openreg_testing.plugin.options import settings
from openreg_testing.plugin.sizes import show_bytes
from openreg_testing.plugin.summary import ReportedTest, lines, nothing_tested, results, watched_of

_TEMPLATE = "report.html.j2"


def pytest_configure(config: pytest.Config) -> None:
    """Raises UsageError before the tests run if the file cannot be written."""
    path = settings(config).report
    if path is None or hasattr(config, "workerinput"):
        return
    if path.is_dir():
        raise pytest.UsageError(f"--openreg-report {path}: this is a folder; name a file, as in {path / 'report.html'}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise pytest.UsageError(f"--openreg-report {path}: {error.strerror}; name a file that can be written") from None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the report."""
    path = settings(session.config).report
    if path is not None and not hasattr(session.config, "workerinput"):
        path.write_text(render(session.config, list(results(session.config).values())), "utf-8")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the path of the report."""
    path = settings(config).report
    if path is not None:
        terminalreporter.write_line(f"report: {path}")


def render(config: pytest.Config, found: list[ReportedTest]) -> str:
    """Returns the HTML page for the results."""
    import jinja2

    given, again = settings(config), functools.partial(repeat.command, config)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["size"] = show_bytes
    template = environment.from_string(Path(__file__).with_name(_TEMPLATE).read_text("utf-8"))
    watched = watched_of(found)
    outcomes: dict[str, int] = {}
    for result in found:
        outcomes[result.outcome] = outcomes.get(result.outcome, 0) + 1
    return template.render(
        device=given.target,
        tests=found,
        lines=lines(watched, given, idle=True, again=again) if watched else [],
        outcomes=outcomes,
        idle=len(_idle(found)),
        warning=nothing_tested(watched, default_device=given.default_device),
    )


def _idle(found: list[ReportedTest]) -> list[ReportedTest]:
    return [result for result in found if result.never_launched]
