# SPDX-License-Identifier: BSD-3-Clause
"""Runs code that may fail, crash or hang in child processes, and collects the result of each step.

The steps of a child are imports and then *probes*, which examine the device. A child appends a line to a file before
and after each step, and a last line at its end. So the step that ended the process is known. If it is a probe, another
child continues after it. ``answers`` parses the file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from . import answers
from .probes.request import Request

# A child loads this package from its folder, whatever is on the ``sys.path`` that it examines.
_START = """\
import sys
from importlib.util import module_from_spec, spec_from_file_location
folder = sys.argv[1]
spec = spec_from_file_location("openreg_doctor", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["openreg_doctor"] = module_from_spec(spec)
from openreg_doctor.probes import child
child.main(*sys.argv[2:])
"""
START_STEP = "start Python"  # the name of the result if the process ended before the first step
# Flags of this process that determine where Python finds modules, with the options that set them.
_PATH_FLAGS = {
    "isolated": "-I",
    "ignore_environment": "-E",
    "no_user_site": "-s",
    "no_site": "-S",
    "safe_path": "-P",
}
_POLL_SECONDS = 0.05
_LINES_OF_STANDARD_ERROR = 8
_END_OF_STANDARD_ERROR = 1 << 18  # bytes that are read from the end of standard error
_MOST_STANDARD_ERROR = 256 << 20  # bytes that a child may write before it is ended
# Lines of a stack that do not locate a fault: calls of this package, which lead to every fault, and loaded modules.
_UNINFORMATIVE = re.compile(
    rf'File "(<string>|{re.escape(str(Path(__file__).parent))}.*)", line '
    r"|Extension modules: |\(most recent call first\)"
)
_MOST_CRASHES = 12  # children for one request


@dataclass(frozen=True)
class StepResult:
    """The result of a step: a value, an error, the reason why it could not check, or how it ended the process."""

    name: str
    value: Any = None
    error: str = ""  # type and text of the exception, in one line
    cause: str = ""  # type and text of the exception that is the root cause, if it is another one
    unseen: str = ""  # why the step could not check anything, such as a missing operator
    ended: str = ""  # how the process ended during the step, and the end of its standard error

    @property
    def done(self) -> bool:
        """Returns True if the step returned a value."""
        return not (self.error or self.unseen or self.ended)

    @property
    def root_cause(self) -> str:
        """Returns the root cause of the failure, in one line; empty if the step did not fail."""
        return self.cause or self.error or self.ended

    @property
    def text(self) -> str:
        """Returns all that is known about the failure."""
        return " <- ".join(part for part in (self.error, self.cause) if part) or self.ended


@dataclass
class ChildResults:
    """The results of the steps of a request, by name, in the order in which they ran."""

    steps: dict[str, StepResult] = field(default_factory=dict)

    def failure(self, *names: str) -> StepResult | None:
        """Returns the first step that failed, of these or, without names, of all; None if none failed."""
        for step in self.steps.values():
            if (not names or step.name in names) and step.root_cause:
                return step
        return None

    def value(self, name: str) -> Any:
        """Returns the value of a step; None if it did not run or failed."""
        step = self.steps.get(name)
        return step.value if step is not None and step.done else None


def run(request: Request, environment: Mapping[str, str], patience: float) -> ChildResults:
    """Runs all steps of the request and returns their results.

    Ends a process that reports nothing for ``patience`` seconds. If a probe ends the process, or the process ends
    between two probes, another child continues after it. At most ``_MOST_CRASHES`` children run.
    """
    results = ChildResults()
    for _ in range(_MOST_CRASHES):
        succeeded = {name: step.done for name, step in results.steps.items() if name.startswith(request.PROBE_PREFIX)}
        steps = _run_once(request, succeeded, environment, patience)
        results.steps.update(steps)
        ended = [name for name, step in steps.items() if step.ended]
        further = any(name.startswith(request.PROBE_PREFIX) for name in steps)
        if not (ended and further and all(name.startswith((request.PROBE_PREFIX, answers.END)) for name in ended)):
            return results
    return results


def _run_once(
    request: Request, succeeded: Mapping[str, bool], environment: Mapping[str, str], patience: float
) -> dict[str, StepResult]:
    """Runs a child and returns the results of its steps.

    ``succeeded`` contains the probes that earlier children ran, each with True if it returned a value.
    """
    folder = str(Path(__file__).parent)
    python = [sys.executable, *_flags(), "-X", "faulthandler"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        place = Path(scratch, "report")
        # Both files stay open here, so that a child may rename or delete them without effect.
        with place.open("w+b") as report, Path(scratch, "errors").open("w+b") as errors:
            arguments = [folder, str(place), json.dumps(asdict(request)), json.dumps(succeeded)]
            try:
                child = subprocess.Popen(
                    [*python, "-c", _START, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=dict(environment),
                )
            except OSError as error:
                return {START_STEP: StepResult(START_STEP, error=f"{type(error).__name__}: {error}")}
            try:
                abort_reason = _wait(child, report, errors, patience)
            finally:
                _end(child)
            parsed = answers.read(_content(report, 0, answers.MOST_BYTES), request)
            stderr = _relevant_lines(_content(errors, -_END_OF_STANDARD_ERROR, _END_OF_STANDARD_ERROR))
        return _steps(parsed, abort_reason, child.returncode, stderr)


def _flags() -> list[str]:
    """Returns the options of _PATH_FLAGS that this process has, so that a child finds the same modules."""
    return [flag for name, flag in _PATH_FLAGS.items() if getattr(sys.flags, name, False)]


def _wait(child: subprocess.Popen[bytes], report: IO[bytes], errors: IO[bytes], patience: float) -> str:
    """Waits until the child ends. Returns why it stopped waiting, or an empty text if the child ended.

    It stops if the report did not grow for ``patience`` seconds, or if a file grew too large.
    """
    size, since = -1, time.monotonic()
    while child.poll() is None:
        now = _size(report)
        if now > answers.MOST_BYTES:
            return f"wrote a report of more than {answers.MOST_BYTES} bytes"
        if _size(errors) > _MOST_STANDARD_ERROR:
            return f"wrote more than {_MOST_STANDARD_ERROR} bytes to standard error"
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > patience:
            return f"reported nothing within {patience:g} s"
        time.sleep(_POLL_SECONDS)
    return ""


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _content(file: IO[bytes], start: int, most: int) -> bytes:
    """Returns at most ``most`` bytes of a file from ``start`` on, which counts from the end if it is negative."""
    file.seek(max(start + (_size(file) if start < 0 else 0), 0))
    return file.read(most)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kills the child if it still runs, so that no process remains after an interrupt either."""
    if child.poll() is None:
        child.kill()
        child.wait()


def _steps(parsed: answers.ChildReport, abort_reason: str, status: int, stderr: str) -> dict[str, StepResult]:
    """Returns the results of all steps of a child.

    If the process ended early, the last step that began has the reason. If no step was running, the reason has the name
    ``answers.END``, or START_STEP before the first step.
    """
    steps = {name: StepResult(**result) for name, result in parsed.results.items()}
    open_steps = list(parsed.open)
    if abort_reason or status != 0 or not parsed.finished:
        early = "" if abort_reason or status != 0 else " before it had finished"
        how = abort_reason or f"ended with {describe_exit(status)}{early}"
        began = bool(parsed.results or parsed.open)
        name = open_steps.pop() if open_steps else answers.END if began else START_STEP
        steps[name] = StepResult(name, ended=f"the process {how}" + (f": {stderr}" if stderr else ""))
    for name in open_steps:
        reason = parsed.first_unreadable or "the report has no line of it"
        steps[name] = StepResult(name, error=f"the step reported no readable result: {reason}")
    if parsed.unreadable:
        count = f"{parsed.unreadable} line{'s' * (parsed.unreadable > 1)}"
        error = f"{count} of a child's report cannot be read; {parsed.first_unreadable}"
        steps[answers.REPORT] = StepResult(answers.REPORT, error=error)
    return steps


def _relevant_lines(errors: bytes) -> str:
    """Returns the lines of standard error that locate the fault.

    The report of a crash begins with its innermost call; that of an exception ends with it.
    """
    text = errors.decode("utf-8", "replace")
    all_lines = [answers.clean(line.strip()) for line in text.splitlines() if line.strip()]
    lines = [line for line in all_lines if not _UNINFORMATIVE.search(line)] or all_lines
    for number, line in enumerate(lines):
        if line.startswith("Fatal Python error"):
            return " | ".join(lines[number : number + _LINES_OF_STANDARD_ERROR])
    return " | ".join(lines[-_LINES_OF_STANDARD_ERROR:])


def describe_exit(code: int) -> str:
    """Returns an exit status in words, with the name of the signal if one ended the process."""
    if code >= 0:
        return f"status {code}"
    import signal

    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
