# SPDX-License-Identifier: BSD-3-Clause
"""Scorecards of the conformance kit list problems, have several formats, and can be compared with earlier ones."""

import json

import pytest

from openreg_testing.conformance import card as cards
from openreg_testing.conformance import run_changes
from openreg_testing.conformance.card import Card, ConformanceResult
from openreg_testing.conformance.manifest import Manifest, OperatorExpectations
from openreg_testing.conformance.operators import run
from openreg_testing.conformance.operators.checks import CHECKS
from openreg_testing.conformance.operators.scorecard import OperatorScores


def of_operators(complete=True, known=None, most=None, native=None, **failures):
    """A scorecard of float32 reports: name to failures."""
    reports = [{"name": name, "dtype": "float32", "failures": found} for name, found in failures.items()]
    manifest = Manifest(operators=known or {}, most_failing=most, native=native or {})
    return OperatorScores(reports, len(reports), CHECKS if complete else (), manifest)


def test_a_failure_fails_the_run():
    assert of_operators(False, abs={"forward": "wrong"}).problems() == ["abs float32: forward: wrong"]
    assert of_operators(False, abs={}).problems() == []


def test_an_exception_excuses_a_failure_and_has_to_be_needed():
    known = {"abs": OperatorExpectations(fails="a reason")}
    assert of_operators(False, known, abs={"forward": "wrong"}).problems() == []
    assert "abs: listed with `fails`, but it passes; delete the entry" in of_operators(True, known, abs={}).problems()
    assert of_operators(False, known, abs={}).problems() == []


def test_a_pattern_of_exceptions_is_needed_if_one_fails():
    known = {"a*": OperatorExpectations(fails="a reason")}
    assert of_operators(True, known, abs={}, add={"forward": "wrong"}).problems() == []
    assert of_operators(True, known, abs={}).problems() == ["a*: listed with `fails`, but it passes; delete the entry"]


def test_exceptions_are_few():
    known = {str(number): OperatorExpectations(fails="a reason") for number in range(11)}
    problems = of_operators(False, known, 10).problems()
    assert "11 entries are listed with `fails`; [expect] most_failing allows 10" in problems
    assert of_operators(False, known, 11).problems() == []


def test_too_few_native_entries_fail_a_complete_run():
    problems = of_operators(native={"float32": 600}, abs={}, add={"forward": "x"}).problems()
    assert "1 entries run float32 natively; [expect] native requires 600" in problems


def test_a_late_entry_has_to_be_late():
    known = {"abs": OperatorExpectations(allows_asynchronous_error="a reason")}
    problems = of_operators(True, known, abs={}).problems()
    assert "abs: listed with `late`, but it has no asynchronous error; delete the key" in problems


def test_a_difference_has_to_be_one():
    known = {"abs": OperatorExpectations(differs={"out": "a reason"})}
    problems = of_operators(True, known, abs={}).problems()
    assert "abs: out: listed with `differs`, but the check passes; delete the entry" in problems


@pytest.fixture
def card():
    results = [
        ConformanceResult("streams", "streams::test_a", "passed", "", ("guard.getStream",)),
        ConformanceResult("streams", "streams::test_b", "failed", "it is <wrong>"),
        ConformanceResult("events", "events::test_c", "skipped", "not claimed"),
        ConformanceResult("events", "events::test_d", "expected failure", "known"),
    ]
    return Card("npu", "2.13.0", "1f2e", results, [of_operators(False, abs={}, add={"forward": "off"})])


def test_the_relay_gets_the_commit_sums_and_failures(card):
    relay = card.relay()
    assert set(relay) == {"delivery-id", "test-results", "failed-tests-detail"}
    assert relay["delivery-id"] == "1f2e"
    assert relay["test-results"] == {"passed": 2, "failed": 2, "skipped": 2}
    assert relay["failed-tests-detail"] == [
        {"name": "streams::test_b", "classname": "streams", "message": "it is <wrong>", "duration": 0.0},
        {"name": "operators::add::float32", "classname": "operators", "message": "forward: off", "duration": 0.0},
    ]


@pytest.mark.parametrize(("count", "reason", "is_whole"), [(3, "é" * 2000, True), (2000, "wrong", False)])
def test_what_the_relay_gets_is_within_its_limits(count, reason, is_whole):
    results = [ConformanceResult("streams", f"streams::test_{number}", "failed", reason) for number in range(count)]
    relay = Card("npu", "2.13.0", results=results).relay()
    listed = relay["failed-tests-detail"]
    assert relay["test-results"]["failed"] == count
    assert (len(listed) == count) == is_whole
    assert [failed["name"] for failed in listed] == [result.name for result in results[: len(listed)]]
    assert all(0 < len(failed["message"].encode()) <= 1024 for failed in listed)
    assert len(json.dumps(listed, indent=2)) < 131072


def test_problems_are_those_of_tests_and_operators(card):
    assert card.problems() == ["streams::test_b: it is <wrong>", "add float32: forward: off"]


def test_nothing_run_is_a_problem():
    assert "nothing was run" in Card("npu", "2.13.0").problems()[0]


def test_a_suite_without_a_tested_test_is_a_problem_that_names_the_way_out():
    skipped = ConformanceResult("events", "events::test_c", "skipped", "no events here")
    card = Card("npu", "2.13.0", results=[skipped], suites=("events",))
    (problem,) = card.problems()
    assert problem.startswith("events: all 1 tests were skipped")
    assert 'skip = "..."' in problem
    assert card.conclusion() == "1 problem"


def test_a_suite_that_the_manifest_excludes_is_no_problem_and_not_called_right():
    excluded = ConformanceResult("events", "events::test_c", "skipped", "not claimed", excluded=True)
    card = Card("npu", "2.13.0", results=[excluded], suites=("events",))
    assert card.problems() == []
    assert card.conclusion() == "nothing was tested: all 1 tests were skipped"


def test_the_terminal_shows_counts_and_reasons(card, capsys):
    cards.show(card, verbose=True)
    shown = capsys.readouterr().out
    assert "conformance of npu with torch 2.13.0" in shown
    assert "streams::test_b: it is <wrong>" in shown
    assert "skipped events::test_c: not claimed" in shown
    assert "2 problems" in shown


def test_the_page_has_every_test_and_escapes(card, tmp_path):
    cards.write_html(card, tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text("utf-8")
    assert all(result.name in page for result in card.all_results())
    assert "it is &lt;wrong&gt;" in page
    assert "guard.getStream" in page


def test_changes_are_reported_with_failures_first(card, tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(card.as_dictionary()), "utf-8")
    old = run_changes.read(path)
    assert run_changes.changes(old, card) == []
    card.results[0] = ConformanceResult("streams", "streams::test_a", "failed", "broken now")
    card.results[1] = ConformanceResult("streams", "streams::test_b", "passed")
    del card.results[3]
    card.results.append(ConformanceResult("events", "events::test_e", "passed"))
    assert [change.describe() for change in run_changes.changes(old, card)] == [
        "streams::test_a: passed -> failed",
        "streams::test_b: failed -> passed",
        "events::test_e: not run -> passed",
        "events::test_d: expected failure -> not run",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "cannot be read as JSON"), ("[]", "is no scorecard of this kit"), ('{"a": 1}', "a file that --json wrote")],
)
def test_what_is_no_scorecard_is_reported(tmp_path, text, told):
    path = tmp_path / "old.json"
    path.write_text(text, "utf-8")
    with pytest.raises(run_changes.ComparisonError, match=told):
        run_changes.read(path)


def test_checks_of_one_entry_are_merged_into_one_report():
    reports = {}
    for compiled, calls in (({}, 2), ({"ours": {"kernels": 1}}, 3)):
        run._add(reports, {"name": "add", "dtype": "float32", "compiled": compiled, "calls": calls})
    assert reports == {
        ("add", "float32"): {"name": "add", "dtype": "float32", "compiled": {"ours": {"kernels": 1}}, "calls": 5}
    }
