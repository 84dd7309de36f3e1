# SPDX-License-Identifier: BSD-3-Clause
"""The suites' tests, run one by one in workers; each worker runs pytest on what it is given."""

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
from .card import Result, judged
from .pool import Answer, Lost, Pool, Processes

FOLDER = Path(__file__).parent / "suites"
SECONDS_PER_TEST = 300.0


EXTRA = ("compiled",)  # run where they are asked for: they take as long as all others


def names() -> list[str]:
    """The suites there are."""
    return sorted(path.stem.removeprefix("test_") for path in FOLDER.glob("test_*.py"))


class SuiteError(Exception):
    """The tests cannot be collected."""


@dataclass(frozen=True)
class Listed:
    """A test of a suite, by the name that a manifest uses and the one that pytest uses."""

    suite: str
    name: str  # suite::test
    node: str
    promises: tuple[str, ...]
    expects: str  # what it says that PyTorch expects


@dataclass(frozen=True)
class Collect:
    """Asks for the tests of suites."""

    suites: tuple[str, ...]

    def run(self) -> list[Listed]:
        """All of them."""
        recorder = _Recorder()
        files = [str(FOLDER / f"test_{suite}.py") for suite in self.suites]
        status = _pytest(["--collect-only", *files], recorder)
        if status != 0 or recorder.errors:
            raise SuiteError("\n".join(recorder.errors) or f"pytest ended with status {status}")
        return recorder.listed


@dataclass(frozen=True)
class RunTest:
    """Asks what becomes of one test."""

    test: Listed

    def run(self) -> Answer:
        """(outcome, reason, seconds)."""
        from .operators import subject

        recorder = _Recorder()
        start = time.monotonic()
        _pytest([f"{FOLDER / self.test.node}"], recorder)
        seconds = time.monotonic() - start
        if not recorder.outcome:
            return Answer(("failed", "\n".join(recorder.errors) or "pytest did not run it", seconds))
        if recorder.outcome == "failed":
            subject.reset(subject.device())
        return Answer((recorder.outcome, recorder.reason, seconds), bool(subject.spent()))


class _Recorder:
    """A pytest plug-in that remembers."""

    def __init__(self) -> None:
        self.listed: list[Listed] = []
        self.errors: list[str] = []
        self.outcome = ""
        self.reason = ""

    def pytest_collection_modifyitems(self, items: Sequence[Any]) -> None:
        from .harness import expected, promises_of

        for item in items:
            suite = item.path.stem.removeprefix("test_")
            node = f"{item.path.name}::{item.name}"
            self.listed.append(Listed(suite, f"{suite}::{item.name}", node, promises_of(item), expected(item)))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.errors.append(str(report.longrepr))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:  # also of what comes before or after the test
            reason = getattr(report, "conformance", "") or report.longreprtext.strip()
            self.outcome, self.reason = "failed", "\n".join(filter(None, (self.reason, reason)))
        elif report.skipped and self.outcome != "failed":
            self.outcome, self.reason = "skipped", report.longrepr[2].removeprefix("Skipped: ")
        elif report.when == "call" and not self.outcome:
            self.outcome = "passed"


def _pytest(arguments: list[str], recorder: _Recorder) -> int:
    import pytest

    # The suites' own plug-in is all they need; those of the environment are for the user's tests.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for variable in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(variable, None)
    own = ["-p", "openreg_testing.conformance.harness", "-p", "no:cacheprovider", "--import-mode=importlib"]
    places = ["-c", str(FOLDER / "pytest.ini"), "--rootdir", str(FOLDER), "--confcutdir", str(FOLDER)]
    return int(pytest.main([*own, *places, "-q", "-s", *arguments], plugins=[recorder]))


def run(
    setup: Setup,
    suites: Sequence[str],
    patterns: Sequence[str] = (),
    jobs: int = 1,
    limit: float = SECONDS_PER_TEST,
    shard: tuple[int, int] = (1, 1),
    processes: Processes | None = None,
) -> Iterator[tuple[Result, str]]:
    """Yields every result, and what is wrong with what the manifest says of it, or ""."""
    manifest = setup.manifest
    whole = set(suites) >= set(names()) - set(EXTRA)
    collect = Collect(tuple(names() if whole else suites))
    with (
        compiler_cache.of_its_own() as settings,
        Pool((setup, collect), jobs, limit, {**settings, **manifest.environment}, processes=processes) as pool,
    ):
        collected = pool.ask(collect)
        if isinstance(collected, Lost):
            raise SuiteError(f"{collected.reason}\n{collected.output}")
        tests: list[Listed] = collected.value
        manifest.refuse_unknown("tests", [test.name for test in tests], () if whole else suites)
        wanted = [
            test
            for test in tests
            if test.suite in suites and (not patterns or any(fnmatch.fnmatchcase(test.name, p) for p in patterns))
        ][shard[0] - 1 :: shard[1]]
        for test in wanted:
            if manifest.test(test.name).skip:
                reason = manifest.test(test.name).skip
                yield Result(test.suite, test.name, "skipped", reason, test.promises, excluded=True), ""
        tasks = [RunTest(test) for test in wanted if not manifest.test(test.name).skip]
        for task, outcome in pool.run(tasks):
            assert isinstance(task, RunTest)
            test = task.test
            status, reason, seconds = _lost(test, outcome) if isinstance(outcome, Lost) else outcome.value
            known = manifest.test(test.name)
            yield judged(test.suite, test.name, status, reason, known, promises=test.promises, seconds=seconds)


def _lost(test: Listed, outcome: Lost) -> tuple[str, str, float]:
    """The result of a test that its process did not survive."""
    from .harness import explained

    return "failed", explained(test.expects, outcome.describe(), test.promises), 0.0
