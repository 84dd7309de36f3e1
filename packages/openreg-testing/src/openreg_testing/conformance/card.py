# SPDX-License-Identifier: BSD-3-Clause
"""The scorecard, the results of a run: written to the terminal, to a JSON or HTML file, and for PyTorch's CI relay.

The CI relay is PyTorch's service that receives the results of the CI of backends outside of its repository.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from .manifest import Exclusion
from .operators.scorecard import OperatorScores

SCHEMA = "openreg-testing conformance 1"
Status = Literal["passed", "failed", "expected failure", "skipped"]
STATUSES: tuple[Status, ...] = ("passed", "failed", "expected failure", "skipped")

# The limits in bytes of what the CI relay gets about failed tests: of a message, and of the whole list. GitHub indents
# the list, and the action reads it from an environment variable, for which Linux's execve() allows 131072 bytes.
_RELAY_MESSAGE = 1024
_RELAY_LIST = 60_000


@dataclass(frozen=True)
class ConformanceResult:
    """The result of one test, or of one operator in one dtype."""

    suite: str
    name: str  # suite::test
    status: Status  # expected failure: it failed, as the manifest (the file of the backend's expected failures) lists
    reason: str = ""  # why it failed or was skipped
    # The rows of the hook table that the test covers, by their keys in openreg-doctor's hooks.toml. The JSON report has
    # this name.
    promises: tuple[str, ...] = ()
    seconds: float = 0.0
    excluded: bool = False  # True: skipped because the manifest says so


@dataclass
class Card:
    """All results of a run of the kit."""

    device: str
    torch: str
    commit: str = ""  # PyTorch's commit from which torch was built
    results: list[ConformanceResult] = field(default_factory=list)
    operators: list[OperatorScores] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # problems that belong to no single test
    suites: tuple[str, ...] = ()  # suites of which at least one test has to run

    def all_results(self) -> list[ConformanceResult]:
        """Returns the results of all tests, and one result for each operator and dtype."""
        return [*self.results, *(result for card in self.operators for result in _operator_results(card))]

    def counts(self) -> dict[str, Counter[str]]:
        """Returns the number of tests with each status, by suite."""
        found: dict[str, Counter[str]] = {}
        for result in self.all_results():
            found.setdefault(result.suite, Counter())[result.status] += 1
        return found

    def problems(self) -> list[str]:
        """Returns the reasons why the run fails, one paragraph each."""
        found = list(self.notes)
        found += [f"{result.name}: {result.reason}" for result in self.results if result.status == "failed"]
        found += [problem for card in self.operators for problem in card.problems()]
        found += [problem for suite in self.suites if (problem := self._untested(suite))]
        if not self.all_results():
            found.append("nothing was run: no test and no operator matches the options")
        return found

    def _untested(self, suite: str) -> str:
        """Returns a problem if all tests of a suite were skipped although the manifest does not exclude it, else ""."""
        results = [result for result in self.results if result.suite == suite]
        skipped = [result for result in results if result.status == "skipped" and not result.excluded]
        if not skipped or any(result.status != "skipped" for result in results):
            return ""
        return (
            f"{suite}: all {len(results)} tests were skipped, so nothing was tested. "
            f"The first is {skipped[0].name}: {skipped[0].reason}. If the backend does not support this, "
            f'exclude the suite in the manifest: [tests] "{suite}::*" = {{ skip = "..." }}'
        )

    def conclusion(self) -> str:
        """Returns the last line of the report."""
        problems, results = len(self.problems()), self.all_results()
        if problems:
            return f"{problems} problem{'s' * (problems > 1)}"
        if all(result.status == "skipped" for result in results):
            return f"nothing was tested: all {len(results)} tests were skipped"
        return "no problems"

    def as_dictionary(self) -> dict[str, Any]:
        """Returns everything as a dictionary, for the JSON file that --compare reads."""
        return {
            "schema": SCHEMA,
            "device": self.device,
            "torch": self.torch,
            "counts": {suite: dict(counter) for suite, counter in self.counts().items()},
            "problems": self.problems(),
            "tests": [asdict(result) for result in self.all_results()],
            "operators": [card.as_dictionary() for card in self.operators],
        }

    def relay(self) -> dict[str, Any]:
        """Returns what PyTorch's CI relay accepts from a backend's own CI, by the names of its action's inputs.

        The action is ``.github/actions/cross-repo-ci-relay-callback`` of pytorch/test-infra. ``delivery-id`` is the
        commit that was tested, as a nightly run reports it. A message that is too long is cut (RFC-0054), and a list of
        failed tests that is too long ends early. The counts are those of all tests.
        """
        results = self.all_results()
        failed: list[dict[str, Any]] = []
        left = _RELAY_LIST
        for result in (result for result in results if result.status == "failed"):
            message = result.reason.encode()[:_RELAY_MESSAGE].decode(errors="ignore")
            detail = {"name": result.name, "classname": result.suite, "message": message, "duration": result.seconds}
            left -= len(json.dumps(detail)) + len(", ")
            if left < 0:
                break
            failed.append(detail)
        total = Counter(result.status for result in results)
        skipped = total["skipped"] + total["expected failure"]
        return {
            "delivery-id": self.commit,
            "test-results": {"passed": total["passed"], "failed": total["failed"], "skipped": skipped},
            "failed-tests-detail": failed,
        }


def _operator_results(card: OperatorScores) -> Iterator[ConformanceResult]:
    """Yields one result for each operator and dtype."""
    for report in card.reports:
        reason = "; ".join(f"{check}: {text}" for check, text in report["failures"].items())
        expected_failure = card.manifest.operator(report["name"]).fails
        status: Status = "passed" if not reason else "expected failure" if expected_failure else "failed"
        name = f"operators::{report['name']}::{report['dtype']}"
        yield ConformanceResult("operators", name, status, reason, (), report.get("seconds", 0.0))


def apply_exclusion(
    suite: str, name: str, outcome: str, reason: str, known: Exclusion, **others: Any
) -> tuple[ConformanceResult, str]:
    """Applies what the manifest lists about a test, `known`, to its outcome.

    Returns the result, and a problem if the test passes although a failure is expected, else "". Without `strict` in
    the manifest that is no problem.
    """
    if outcome == "failed" and known.fails:
        return ConformanceResult(suite, name, "expected failure", f"{known.fails} ({reason})", **others), ""
    needless = outcome == "passed" and known.fails and known.strict
    note = (
        f"{name}: the manifest lists an expected failure ({known.fails}), but the test passes; delete the entry"
        if needless
        else ""
    )
    status: Status = "passed" if outcome == "passed" else "skipped" if outcome == "skipped" else "failed"
    return ConformanceResult(suite, name, status, reason, **others), note


def show(card: Card, verbose: bool = False) -> None:
    """Prints the scorecard to the terminal; `verbose` lists the skipped tests."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"conformance of {card.device} with torch {card.torch}", title_justify="left")
    for column in ("suite", *STATUSES):
        # Names of suites that are files of PyTorch are paths, which may be long.
        table.add_column(column, justify="left" if column == "suite" else "right", overflow="fold")
    for suite, counter in card.counts().items():
        table.add_row(suite, *(str(counter[status]) for status in STATUSES))
    console.print(table)
    for operators in card.operators:
        operators.show(console)
    skipped = [result for result in card.results if result.status == "skipped"]
    if verbose:
        _lines(console, (f"skipped {result.name}: {result.reason}" for result in skipped))
    elif skipped:
        console.print(f"{len(skipped)} tests were skipped; --verbose, --json and --html list the reasons")
    _lines(console, card.problems(), "red")
    console.print(card.conclusion(), style="bold")


def _lines(console: Any, lines: Iterable[str], style: str | None = None) -> None:
    for line in lines:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def write_html(card: Card, path: Path) -> None:
    """Writes all results to one HTML file."""
    import jinja2

    folder = Path(__file__).parent
    loader = jinja2.FileSystemLoader(folder)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.get_template("card.html.jinja")
    path.write_text(page.render(card=card, statuses=STATUSES, results=card.all_results()), "utf-8")
