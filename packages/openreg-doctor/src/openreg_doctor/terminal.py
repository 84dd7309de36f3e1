# SPDX-License-Identifier: BSD-3-Clause
"""Prints the report as text: with colors in a terminal, without colors in a pipe or if NO_COLOR is set.

Problems come first. A *missing part* is a hook, name or registration that the backend lacks and that not every backend
has. These are only counted, unless ``--missing`` or ``--verbose`` lists them. A new backend lacks dozens of them, among
which the two that everything needs would be hard to find.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from .document import DoctorReport
from .finding import Finding, Section, Status

_STATUS_TEXTS: dict[Status, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "note": ("note", "cyan"),
    "unseen": ("not examined", "dim"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "bold red"),
}
# Listed even without --verbose, because they describe the installation.
_ALWAYS_LISTED = ("environment.", "packages.", "abi.", "autoload.", "checks.", "device.", "operators.", "startup.")
# Statuses whose findings are only counted, because they are many: the words after the count, and the option that
# lists them.
_QUIET: dict[Status, tuple[str, str]] = {
    "ok": ("as they should be", "--verbose"),
    "warning": ("missing that not every backend has", "--missing"),
    "note": ("missing that only users call", "--verbose"),
    "unseen": ("not examined", "--verbose"),
}
_INDENT = 4  # columns
_NARROWEST = 10  # the smallest width in columns into which a text is wrapped
PIPED_WIDTH = 120  # columns of a line if the output is not a terminal


def show(report: DoctorReport, *, verbose: bool, missing: bool = False) -> None:
    """Prints the report at the width of the terminal, without truncating any text.

    ``verbose`` lists all findings; ``missing`` lists all missing parts.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPED_WIDTH)
    if report.problems:
        _show_section(console, report, Section("Problems", tuple(report.problems)), set())
    quiet = set() if verbose else set(_QUIET) - ({"warning"} if missing else set())
    for section in report.sections:
        others = tuple(item for item in section.findings if item not in report.problems)
        _show_section(console, report, Section(section.title, others), quiet)
    if report.explanation is not None:
        _print(console, Text(report.explanation.name, style="bold"), 0)
        _print_fact(console, "schema", report.explanation.schema)
        for fact in report.explanation.facts:
            _print_fact(console, fact.aspect, fact.text)
        console.print()
    _print(console, _conclusion(report, "" if verbose or missing else " (see --missing)"), 0)


def _show_section(console: Console, report: DoctorReport, section: Section, quiet: set[Status]) -> None:
    """Prints a section. Only counts findings with a status in ``quiet``, unless ``_is_listed()`` selects them."""
    if not section.findings:
        return
    _print(console, Text(section.title, style="bold"), 0)
    hidden: dict[Status, int] = {}
    for finding in section.findings:
        if finding.status in quiet and not _is_listed(finding):
            hidden[finding.status] = hidden.get(finding.status, 0) + 1
        else:
            _show_finding(console, report, finding)
    for option in dict.fromkeys(option for _, option in _QUIET.values()):
        counts = [
            f"{hidden[status]} {words}"
            for status, (words, listed_by) in _QUIET.items()
            if listed_by == option and status in hidden
        ]
        if counts:
            _print(console, Text(f"{', '.join(counts)} (see {option})", style="dim"), _INDENT)
    console.print()


def _is_listed(finding: Finding) -> bool:
    """Returns True if the finding is listed although its status is quiet.

    These are findings about the installation, warnings other than missing parts, and notes that are not about a name of
    the device's module.
    """
    if finding.status == "warning":
        return not finding.is_missing_part
    return finding.check.startswith(_ALWAYS_LISTED) or (finding.status == "note" and not _is_about_module(finding))


def _is_about_module(finding: Finding) -> bool:
    return finding.check.startswith("module.")


def _show_finding(console: Console, report: DoctorReport, finding: Finding) -> None:
    word, style = _STATUS_TEXTS[finding.status]
    if report.ignores(finding):
        word, style = "ignored", "dim"
    _print(console, Text.assemble((word, style), f"  {finding.what}"), _INDENT)
    if finding.status != "ok":
        details = [("check", finding.check), ("costs", finding.costs), ("fix", finding.fix), ("guide", finding.chapter)]
        for label, text in details:
            if text:
                _print(console, Text.assemble((f"{label}: ", "dim"), text), 2 * _INDENT)


def _print(console: Console, text: Text, indent: int) -> None:
    """Prints the text in indented lines without trailing spaces."""
    for line in text.wrap(console, max(console.width - indent, _NARROWEST)):
        line.rstrip()
        console.print(Text(" " * indent) + line, soft_wrap=True)


def _print_fact(console: Console, label: str, text: str) -> None:
    _print(console, Text.assemble((f"{label}: ", "cyan"), text), _INDENT)


def _conclusion(report: DoctorReport, hint: str) -> Text:
    problems = len(report.problems)
    ignored = sum(report.ignores(finding) for _, finding in report.findings)
    missing = sum(finding.is_missing_part for _, finding in report.findings)
    warnings = sum(finding.status == "warning" for _, finding in report.findings) - missing
    rest = f"; {warnings} warning{'s' * (warnings > 1)}" if warnings else ""
    rest += f"; {missing} missing part{'s' * (missing > 1)}{hint}" if missing else ""
    rest += f"; {ignored} ignored" if ignored else ""
    if problems:
        return Text(f"{report.device}: {problems} problem{'s' * (problems > 1)} found{rest}", style="bold red")
    return Text(f"{report.device}: no problem found{rest}", style="bold green")
