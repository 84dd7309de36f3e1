# SPDX-License-Identifier: BSD-3-Clause
"""The summary of what all tests did on the device, in pytest's terminal output, computed from their reports."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from openreg_testing.plugin import repeat
from openreg_testing.plugin.options import PluginSettings, settings
from openreg_testing.plugin.sizes import show_bytes
from openreg_testing.plugin.usage import facts_of

RESULTS = pytest.StashKey["dict[str, ReportedTest]"]()
_MOST_PLACES = 10
_DEFAULT_DEVICE = "Tests that name no device make their tensors on the CPU: --default-device makes them on the device"
_TWO_DEVICES = "on the same device"  # a part of PyTorch's error for operands on two devices


@dataclass
class ReportedTest:
    """The result of one test, from the reports of its phases."""

    name: str
    outcome: str = "passed"
    facts: dict[str, Any] = field(default_factory=dict)  # what it did on the device
    message: str = ""  # why it failed or was skipped

    @property
    def never_launched(self) -> bool:
        """True if the test passed without launching a kernel."""
        return self.outcome == "passed" and self.facts.get("launches") == 0


def results(config: pytest.Config) -> dict[str, ReportedTest]:
    """Returns the results of the tests that have run so far, by their node ids."""
    return config.stash.setdefault(RESULTS, {})


def watched_of(found: Iterable[ReportedTest]) -> list[ReportedTest]:
    """Returns the results of watched tests, which have the fact "device" (usage.py).

    Other tests may have other facts, those of tests in worker processes (isolation.py).
    """
    return [result for result in found if "device" in result.facts]


class _Gatherer:
    """A plug-in that collects results from the reports of this process and of xdist's workers."""

    def __init__(self, found: dict[str, ReportedTest]) -> None:
        self._found = found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = self._found.setdefault(report.nodeid, ReportedTest(report.nodeid))
        result.facts.update(facts_of(report))
        if report.outcome == "passed" and result.outcome == "passed" and hasattr(report, "wasxfail"):
            result.outcome = "xpassed"
        if report.outcome != "passed" and result.outcome in ("passed", "xpassed"):
            result.outcome = "xfailed" if hasattr(report, "wasxfail") else _word(report)
            crash = getattr(report.longrepr, "reprcrash", None)
            result.message = crash.message if crash is not None else report.longreprtext
            if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
                result.message = report.longrepr[2]


def _word(report: pytest.TestReport) -> str:
    """Returns the outcome of a report; "error" for a failed setup or teardown."""
    return report.outcome if report.when == "call" or report.outcome == "skipped" else "error"


def pytest_configure(config: pytest.Config) -> None:
    """Registers the collector of results in the process that receives all reports, not in xdist's workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Gatherer(results(config)), "openreg_testing.gatherer")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Writes the summary section if any test was watched."""
    watched = watched_of(results(config).values())
    if not watched:
        return
    given = settings(config)
    terminalreporter.section(f"device {given.target or watched[0].facts['device']}", sep="=")
    again = functools.partial(repeat.command, config)
    for line in lines(watched, given, idle=bool(given.target), again=again):
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Writes the warning of ``nothing_tested`` as the last line, below the line of pytest that says "passed"."""
    outcome = yield
    config = session.config
    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and settings(config).target and not hasattr(config, "workerinput"):
        warning = nothing_tested(watched_of(results(config).values()), default_device=settings(config).default_device)
        if warning:
            terminal.write_line(warning, yellow=True, bold=True)
    return outcome


def nothing_tested(watched: list[ReportedTest], *, default_device: bool) -> str:
    """Returns a warning if tests passed and no test of the run used the device, else an empty string.

    Such a run looks like a success, and has tested nothing on the device.
    """
    unused = [result for result in watched if result.facts.get("launches") == result.facts.get("copies") == 0]
    if len(unused) < len(watched) or not any(result.outcome == "passed" for result in unused):
        return ""
    device = watched[0].facts["device"]
    causes = []
    if any(result.facts.get("cuda") for result in watched):
        causes.append("The lines that mean CUDA, above, may be the reason.")
    if default_device:
        causes.append("--default-device has no effect on code that names a device.")
    else:
        causes.append(f"{_DEFAULT_DEVICE}.")
    none = f"{_tests(len(watched))} launched no kernel and copied nothing there"
    return f"Nothing was tested on {device}: {none}. {' '.join(causes)}"


def lines(watched: list[ReportedTest], given: PluginSettings, *, idle: bool, again: Callable[[str], str]) -> list[str]:
    """Returns the lines of the section; with ``idle``, also the passed tests that never launched a kernel.

    ``given`` are the options of the run. ``again`` returns the command that repeats a test.
    """
    return [
        *_totals(watched, has_device=bool(given.target), is_sanitized=given.sanitize),
        *_fallbacks(watched),
        *_waits(watched),
        *_memory(watched),
        *_leaks(watched),
        *_errors(watched),
        *_causes(watched, "missing_lines", "missing line"),
        *_causes(watched, "wrong_accesses", "wrong access"),
        *_cuda(watched, again),
        *(_idle(watched, given.default_device) if idle else []),
        *_unchecked(watched, given),
    ]


def _totals(watched: list[ReportedTest], *, has_device: bool, is_sanitized: bool) -> list[str]:
    def total(name: str) -> int:
        return sum(result.facts.get(name, 0) for result in watched)

    # Without a device of the run, waits are recorded only for tests with a mark.
    counters = {"launches": "launches", "fallbacks": "fallbacks", **({"waits": "host waits"} if has_device else {})}
    missing = [what for fact, what in counters.items() if all(fact not in result.facts for result in watched)]
    uncounted = [f"torch.{watched[0].facts['device']} does not count {', '.join(missing)}"] if missing else []
    if "launches" in missing:
        return [_tests(len(watched)), *uncounted]
    # The sanitizer fills memory after each allocation, and the device counts fills as copies.
    fills = ", with the fills of --sanitize" if is_sanitized else ""
    copied = show_bytes(total("bytes_copied")) + fills
    counts = f"{_tests(len(watched))}; launches: {total('launches')}, copies: {total('copies')} ({copied})"
    return [counts, *uncounted]


def _fallbacks(watched: list[ReportedTest]) -> list[str]:
    counts: Counter[str] = Counter()
    for result in watched:
        counts.update(result.facts.get("fallbacks", {}))
    if not counts:
        return []
    tests = sum(bool(result.facts.get("fallbacks")) for result in watched)
    named = ", ".join(f"{name} {calls}" for name, calls in counts.most_common())
    return [f"fallbacks to the CPU: {counts.total()} in {_tests(tests)}: {named}"]


def _waits(watched: list[ReportedTest]) -> list[str]:
    total = sum(result.facts.get("waits", 0) for result in watched)
    places: Counter[str] = Counter()
    for result in watched:
        places.update(result.facts.get("waits_of_library", {}))
    if not total:
        return []
    found = [f"host waits: {total}, {places.total()} of them in code outside tests"]
    found += [f"  {place}: {count}" for place, count in places.most_common(_MOST_PLACES)]
    more = len(places) - _MOST_PLACES
    return [*found, f"  and {more} more lines"] if more > 0 else found


def _memory(watched: list[ReportedTest]) -> list[str]:
    most = max(watched, key=lambda result: result.facts.get("peak_bytes", 0))
    peak = most.facts.get("peak_bytes", 0)
    if not peak:
        return []
    limit = most.facts.get("memory_limit")
    budget = f" of {show_bytes(limit)}" if limit is not None else ""
    return [f"peak memory: {show_bytes(peak)}{budget}, in {most.name}"]


def _leaks(watched: list[ReportedTest]) -> list[str]:
    leaking = [result for result in watched if result.facts.get("leaked_bytes")]
    return [f"leak: {show_bytes(item.facts['leaked_bytes'])} in {item.name}" for item in leaking]


def _errors(watched: list[ReportedTest]) -> list[str]:
    return [f"device error: {item.name}: {item.facts['error']}" for item in watched if "error" in item.facts]


def _causes(watched: list[ReportedTest], fact: str, noun: str) -> list[str]:
    """Lists the findings of --sanitize, those of all tests with one cause as one."""
    tests: Counter[str] = Counter()
    for result in watched:
        tests.update(result.facts.get(fact, []))
    if not tests:
        return []
    affected = sum(bool(result.facts.get(fact)) for result in watched)
    plural = "" if len(tests) == 1 else "es" if noun.endswith("s") else "s"
    return [
        f"{len(tests)} {noun}{plural}, found by --sanitize in {_tests(affected)}:",
        *(f"  {cause}, in {_tests(count)}" for cause, count in tests.most_common()),
    ]


def _unchecked(watched: list[ReportedTest], given: PluginSettings) -> list[str]:
    """Names the option that checks what this run did not: a test with a race may pass."""
    on_openreg = given.target.partition(":")[0] == "openreg"
    launched = any(result.facts.get("launches") for result in watched)
    if given.sanitize or not on_openreg or not launched:
        return []
    return ["not checked: waits between streams, and with the host; --sanitize finds those that are missing"]


def _cuda(watched: list[ReportedTest], again: Callable[[str], str]) -> list[str]:
    """Lists the lines outside of tests that refer to CUDA. They do not use the device, even if their tests pass."""
    places: dict[str, tuple[str, str]] = {}  # what the line does, and the first test that reached it
    for result in watched:
        for place, what in result.facts.get("cuda", {}).items():
            places.setdefault(place, (what, result.name))
    if not places:
        return []
    device = watched[0].facts["device"]
    shown = sorted(places, key=_order_of_places)
    mean = "means" if len(places) == 1 else "mean"
    found = [f"{_lines(len(places))} of code outside tests {mean} CUDA, which this run does not have:"]
    found += [f"  {place} {places[place][0]}, in {places[place][1]}" for place in shown[:_MOST_PLACES]]
    if len(places) > _MOST_PLACES:
        found.append(f"  and {len(places) - _MOST_PLACES} more lines")
    return [
        *found,
        *_two_devices(watched),
        f"  This code runs elsewhere than on {device}, or in another way: use torch.accelerator, or --cuda-as {device}",
        "  To repeat the first:",
        f"    {again(places[shown[0]][1])}",
    ]


def _two_devices(watched: list[ReportedTest]) -> list[str]:
    """Names the likely cause of each failure with operands on two devices whose test reached a line for CUDA."""
    return [
        f"  {result.name} failed because operands were on two devices: "
        f"{min(result.facts['cuda'], key=_order_of_places)} may have put one of them on the CPU"
        for result in watched
        if result.facts.get("cuda") and _TWO_DEVICES in result.message
    ]


def _order_of_places(place: str) -> tuple[bool, str, int]:
    """Returns a sort key that puts lines of the project, whose paths are relative, before all others."""
    file, _, line = place.rpartition(":")
    return Path(file).is_absolute(), file, int(line)


def _idle(watched: list[ReportedTest], default_device: bool) -> list[str]:
    idle = [result for result in watched if result.never_launched]
    passed = [result for result in watched if result.outcome == "passed"]
    if not idle:
        return []
    most = 2 * len(idle) > len(passed) and not nothing_tested(watched, default_device=default_device)
    return [
        f"never launched anything, and passed: {len(idle)} of {_tests(len(passed))} that passed",
        *_named(idle, passed),
        *([f"  That is more than half. {_DEFAULT_DEVICE}"] if most and not default_device else []),
    ]


def _named(idle: list[ReportedTest], passed: list[ReportedTest]) -> list[str]:
    """Returns one line for each test, or one for several cases of a parametrized test.

    The file of --openreg-report lists each case.
    """
    cases, of = (Counter(result.name.partition("[")[0] for result in group) for group in (idle, passed))
    lines = [f"  {name}[...]: {count} of {of[name]} cases" for name, count in cases.items() if count > 1]
    return [*(f"  {result.name}" for result in idle if cases[result.name.partition("[")[0]] == 1), *lines]


def _lines(count: int) -> str:
    return f"{count} line{'s' * (count != 1)}"


def _tests(count: int) -> str:
    return f"{count} test{'s' * (count != 1)}"
