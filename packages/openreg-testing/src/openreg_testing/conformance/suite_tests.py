# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of the folder ``suites`` in worker processes, each of which runs pytest on one test at a time.

The manifest is the file of the backend's expected failures.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import compiler_cache
from .bring_up import Setup
from .card import ConformanceResult, apply_exclusion
from .pool import CompletedTask, FailedTask, Processes, WorkerPool

FOLDER = Path(__file__).parent / "suites"
SECONDS_PER_TEST = 300.0


EXTRA = ("compiled",)  # run on request only, because they take as long as all other suites together


def names() -> list[str]:
    """Returns the names of all suites."""
    return sorted(path.stem.removeprefix("test_") for path in FOLDER.glob("test_*.py"))


class SuiteError(Exception):
    """An error for tests that cannot be collected."""


@dataclass(frozen=True)
class CollectedTest:
    """A collected test of a suite."""

    suite: str
    name: str  # suite::test, as the manifest names it
    node: str  # file::test, as pytest names it
    # The hooks, names or registrations of a backend that it covers, by their keys in openreg-doctor's hooks.toml.
    covers: tuple[str, ...]
    expects: str  # its docstring: what PyTorch expects


@dataclass(frozen=True)
class CollectTests:
    """A picklable object whose `run()`, in a worker process, collects the tests of suites."""

    suites: tuple[str, ...]

    def run(self) -> list[CollectedTest]:
        """Returns the tests. Raises SuiteError if pytest cannot collect them."""
        recorder = _PytestRecorder()
        files = [str(FOLDER / f"test_{suite}.py") for suite in self.suites]
        status = _pytest(["--collect-only", *files], recorder)
        if status != 0 or recorder.errors:
            raise SuiteError("\n".join(recorder.errors) or f"pytest ended with status {status}")
        return recorder.listed


@dataclass(frozen=True)
class RunTest:
    """A picklable object whose `run()`, in a worker process, runs one test."""

    test: CollectedTest

    def run(self) -> CompletedTask:
        """Returns (outcome, reason, seconds); the outcome is "passed", "failed" or "skipped"."""
        from .operators import device_under_test

        recorder = _PytestRecorder()
        start = time.monotonic()
        _pytest([f"{FOLDER / self.test.node}"], recorder)
        seconds = time.monotonic() - start
        if not recorder.outcome:
            return CompletedTask(("failed", "\n".join(recorder.errors) or "pytest did not run the test", seconds))
        if recorder.outcome == "failed":
            device_under_test.reset()
        return CompletedTask(
            (recorder.outcome, recorder.reason, seconds), process_unusable=bool(device_under_test.unusable_reason())
        )


class _PytestRecorder:
    """A pytest plug-in that keeps the collected tests, the errors, and the result of the last test."""

    def __init__(self) -> None:
        self.listed: list[CollectedTest] = []
        self.errors: list[str] = []
        self.outcome = ""
        self.reason = ""

    def pytest_collection_modifyitems(self, items: Sequence[Any]) -> None:
        from .harness import covered_rows, expectation

        for item in items:
            suite = item.path.stem.removeprefix("test_")
            node = f"{item.path.name}::{item.name}"
            self.listed.append(
                CollectedTest(suite, f"{suite}::{item.name}", node, covered_rows(item), expectation(item))
            )

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.errors.append(str(report.longrepr))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:  # in the setup, the test or the teardown
            # pytest_runtest_makereport() in harness.py sets `conformance`, the explanation of the failure.
            reason = getattr(report, "conformance", "") or report.longreprtext.strip()
            self.outcome, self.reason = "failed", "\n".join(filter(None, (self.reason, reason)))
        elif report.skipped and self.outcome != "failed":
            self.outcome, self.reason = "skipped", report.longrepr[2].removeprefix("Skipped: ")
        elif report.when == "call" and not self.outcome:
            self.outcome = "passed"


def _pytest(arguments: list[str], recorder: _PytestRecorder) -> int:
    import pytest

    # The suites need only their own plug-in; other installed plug-ins are for the user's tests.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for variable in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(variable, None)
    plugins = ["-p", "openreg_testing.conformance.harness", "-p", "no:cacheprovider", "--import-mode=importlib"]
    folders = ["-c", str(FOLDER / "pytest.ini"), "--rootdir", str(FOLDER), "--confcutdir", str(FOLDER)]
    return int(pytest.main([*plugins, *folders, "-q", "-s", *arguments], plugins=[recorder]))


def run(
    setup: Setup,
    suites: Sequence[str],
    patterns: Sequence[str] = (),
    jobs: int = 1,
    limit: float = SECONDS_PER_TEST,
    shard: tuple[int, int] = (1, 1),
    processes: Processes | None = None,
) -> Iterator[tuple[ConformanceResult, str]]:
    """Yields the result of each test, and a problem if the manifest's entry for the test is wrong, else "".

    `shard` is (K, N) and selects the K-th of N parts. Raises SuiteError if the tests cannot be collected, and
    ManifestError if the manifest lists an unknown test.
    """
    manifest = setup.manifest
    whole = set(suites) >= set(names()) - set(EXTRA)
    collect = CollectTests(tuple(names() if whole else suites))
    with (
        compiler_cache.empty_cache() as settings,
        WorkerPool(
            prepare=(setup, collect),
            jobs=jobs,
            limit=limit,
            environment={**settings, **manifest.environment},
            processes=processes,
        ) as pool,
    ):
        collected = pool.ask(collect)
        if isinstance(collected, FailedTask):
            raise SuiteError(f"{collected.reason}\n{collected.output}")
        tests: list[CollectedTest] = collected.value
        manifest.refuse_unknown("tests", [test.name for test in tests], () if whole else suites)
        selected = [
            test
            for test in tests
            if test.suite in suites and (not patterns or any(fnmatch.fnmatchcase(test.name, p) for p in patterns))
        ][shard[0] - 1 :: shard[1]]
        for test in selected:
            if manifest.test(test.name).skip:
                reason = manifest.test(test.name).skip
                yield ConformanceResult(test.suite, test.name, "skipped", reason, test.covers, excluded=True), ""
        tasks = [RunTest(test) for test in selected if not manifest.test(test.name).skip]
        for task, outcome in pool.run(tasks):
            assert isinstance(task, RunTest)
            test = task.test
            status, reason, seconds = _lost_result(test, outcome) if isinstance(outcome, FailedTask) else outcome.value
            known = manifest.test(test.name)
            # `promises` is the key of JSON reports for what a test covers.
            yield apply_exclusion(test.suite, test.name, status, reason, known, promises=test.covers, seconds=seconds)


def _lost_result(test: CollectedTest, outcome: FailedTask) -> tuple[str, str, float]:
    """Returns (outcome, reason, seconds) of a test whose process ended or timed out."""
    from .harness import explain_failure

    return "failed", explain_failure(test.expects, outcome.describe(), test.covers), 0.0
