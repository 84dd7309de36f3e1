# SPDX-License-Identifier: BSD-3-Clause
"""The report for people: with colours in a terminal, plain where it is piped or NO_COLOR is set.

Problems come first. What a backend need not have is counted, and listed where somebody asks for it: a young backend
lacks dozens of parts, between which nobody would find the two that everything needs.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from .document import Report
from .finding import Finding, Section, Status

_MARKS: dict[Status, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "note": ("note", "cyan"),
    "unseen": ("not seen", "dim"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "bold red"),
}
# Listed even where nobody asks for everything: they describe the installation.
_ALWAYS_LISTED = ("environment.", "packages.", "abi.", "autoload.", "checks.", "device.", "operators.", "startup.")
# Only counted, because they are many, with the option that lists them.
_QUIET: dict[Status, tuple[str, str]] = {
    "ok": ("as they should be", "--verbose"),
    "warning": ("missing that not every backend has", "--missing"),
    "note": ("missing that only users ask for", "--verbose"),
    "unseen": ("not examined", "--verbose"),
}
_INDENT = 4
_NARROWEST = 10
PIPED_WIDTH = 120  # characters of a line where no terminal says how many it has


def show(report: Report, *, verbose: bool, missing: bool = False) -> None:
    """Prints it, as wide as the terminal, and without cutting what is piped; ``missing`` lists all missing parts."""
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
        _say(console, "schema", report.explanation.schema)
        for fact in report.explanation.facts:
            _say(console, fact.aspect, fact.text)
        console.print()
    _print(console, _conclusion(report, "" if verbose or missing else " (see --missing)"), 0)


def _show_section(console: Console, report: Report, section: Section, quiet: set[Status]) -> None:
    """With the findings of these states counted, as far as they are many."""
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
        said = [
            f"{hidden[status]} {words}" for status, (words, of) in _QUIET.items() if of == option and status in hidden
        ]
        if said:
            _print(console, Text(f"{', '.join(said)} (see {option})", style="dim"), _INDENT)
    console.print()


def _is_listed(finding: Finding) -> bool:
    """Whether it is told each time: of the installation, and what is worth knowing of more than one name."""
    if finding.status == "warning":
        return not finding.is_missing_part
    return finding.check.startswith(_ALWAYS_LISTED) or (finding.status == "note" and not _of_module(finding))


def _of_module(finding: Finding) -> bool:
    return finding.check.startswith("module.")


def _show_finding(console: Console, report: Report, finding: Finding) -> None:
    mark, style = _MARKS[finding.status]
    if report.ignores(finding):
        mark, style = "ignored", "dim"
    _print(console, Text.assemble((mark, style), f"  {finding.what}"), _INDENT)
    if finding.status != "ok":
        details = [("check", finding.check), ("costs", finding.costs), ("fix", finding.fix), ("guide", finding.chapter)]
        for label, text in details:
            if text:
                _print(console, Text.assemble((f"{label}: ", "dim"), text), 2 * _INDENT)


def _print(console: Console, text: Text, indent: int) -> None:
    """Prints indented lines that end where their words end."""
    for line in text.wrap(console, max(console.width - indent, _NARROWEST)):
        line.rstrip()
        console.print(Text(" " * indent) + line, soft_wrap=True)


def _say(console: Console, label: str, text: str) -> None:
    _print(console, Text.assemble((f"{label}: ", "cyan"), text), _INDENT)


def _conclusion(report: Report, hint: str) -> Text:
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
