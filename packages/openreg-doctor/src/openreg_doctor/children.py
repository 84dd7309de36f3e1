# SPDX-License-Identifier: BSD-3-Clause
"""Runs what may fail, crash or hang in child processes, and gathers what became of each step.

A child appends a line to a file before and after each step, and a last one. So the step that ended the process is
known, and another child goes on behind it. ``answers`` reads the file.
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

# A child loads this very package by its folder, whatever stands on the path that it examines.
_START = """\
import sys
from importlib.util import module_from_spec, spec_from_file_location
folder = sys.argv[1]
spec = spec_from_file_location("openreg_doctor", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["openreg_doctor"] = module_from_spec(spec)
from openreg_doctor.probes import worker
worker.main(*sys.argv[2:])
"""
START_STEP = "start Python"
_PATH_FLAGS = {
    "isolated": "-I",
    "ignore_environment": "-E",
    "no_user_site": "-s",
    "no_site": "-S",
    "safe_path": "-P",
}
_POLL_SECONDS = 0.05
_LINES_OF_STANDARD_ERROR = 8
_END_OF_STANDARD_ERROR = 1 << 18  # bytes that are looked at
_MOST_STANDARD_ERROR = 256 << 20  # bytes that a child may write
# In a stack: calls of this package lead to every fault, and tell nothing of one; nor does what else Python has loaded.
_TELLS_NOTHING = re.compile(
    rf'File "(<string>|{re.escape(str(Path(__file__).parent))}.*)", line '
    r"|Extension modules: |\(most recent call first\)"
)
_MOST_CRASHES = 12


@dataclass(frozen=True)
class Step:
    """What became of a step: a value, an error, or the way in which it ended the process."""

    name: str
    value: Any = None
    error: str = ""  # type and text of the exception, in one line
    cause: str = ""  # the same of the exception at the root, if another one
    unseen: str = ""  # why the step could not tell
    ended: str = ""  # how the process ended in it, and the end of its standard error

    @property
    def done(self) -> bool:
        """Whether it gave a value."""
        return not (self.error or self.unseen or self.ended)

    @property
    def root(self) -> str:
        """The root of the failure, in one line; empty if there was none."""
        return self.cause or self.error or self.ended

    @property
    def text(self) -> str:
        """All that is known of the failure."""
        return " <- ".join(part for part in (self.error, self.cause) if part) or self.ended


@dataclass
class Outcome:
    """All steps, in the order in which they ran."""

    steps: dict[str, Step] = field(default_factory=dict)

    def failure(self, *names: str) -> Step | None:
        """The first of these steps (or of all) that failed."""
        for step in self.steps.values():
            if (not names or step.name in names) and step.root:
                return step
        return None

    def value(self, name: str) -> Any:
        """What a step gave; None if it did not run or failed."""
        step = self.steps.get(name)
        return step.value if step is not None and step.done else None


def run(request: Request, environment: Mapping[str, str], patience: float) -> Outcome:
    """Runs all steps of the request. A step that gives no sign for ``patience`` seconds is ended, with its process.

    Where a probe ends the process, or it ends between two of them, another child goes on behind it.
    """
    outcome = Outcome()
    for _ in range(_MOST_CRASHES):
        known = {name: step.done for name, step in outcome.steps.items() if name.startswith(request.PROBE)}
        steps = _run_once(request, known, environment, patience)
        outcome.steps.update(steps)
        ended = [name for name, step in steps.items() if step.ended]
        further = any(name.startswith(request.PROBE) for name in steps)
        if not (ended and further and all(name.startswith((request.PROBE, answers.END)) for name in ended)):
            return outcome
    return outcome


def _run_once(
    request: Request, known: Mapping[str, bool], environment: Mapping[str, str], patience: float
) -> dict[str, Step]:
    folder = str(Path(__file__).parent)
    python = [sys.executable, *_flags(), "-X", "faulthandler"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        place = Path(scratch, "report")
        # Both stay open here: what a child does to the names of the files changes nothing.
        with place.open("w+b") as report, Path(scratch, "errors").open("w+b") as errors:
            arguments = [folder, str(place), json.dumps(asdict(request)), json.dumps(known)]
            try:
                child = subprocess.Popen(
                    [*python, "-c", _START, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=dict(environment),
                )
            except OSError as error:
                return {START_STEP: Step(START_STEP, error=f"{type(error).__name__}: {error}")}
            try:
                given_up = _wait(child, report, errors, patience)
            finally:
                _end(child)
            told = answers.read(_content(report, 0, answers.MOST_BYTES), request)
            said = _most_telling(_content(errors, -_END_OF_STANDARD_ERROR, _END_OF_STANDARD_ERROR))
        return _steps(told, given_up, child.returncode, said)


def _flags() -> list[str]:
    """What decides where Python looks for modules, as this process was started: a child has to find the same ones."""
    return [flag for name, flag in _PATH_FLAGS.items() if getattr(sys.flags, name, False)]


def _wait(child: subprocess.Popen[bytes], report: IO[bytes], errors: IO[bytes], patience: float) -> str:
    """Waits for the end; why that was given up, if the report did not grow for too long or a file grew too large."""
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
            return f"gave no answer within {patience:g} s"
        time.sleep(_POLL_SECONDS)
    return ""


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _content(file: IO[bytes], start: int, most: int) -> bytes:
    """So many bytes of a file from a place on, which counts from its end where it is negative."""
    file.seek(max(start + (_size(file) if start < 0 else 0), 0))
    return file.read(most)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Leaves no process behind, also where the user interrupts."""
    if child.poll() is None:
        child.kill()
        child.wait()


def _steps(told: answers.Answers, given_up: str, status: int, said: str) -> dict[str, Step]:
    """What became of all steps that the child took; the one at which it ended is the last that began."""
    steps = {name: Step(**entry) for name, entry in told.entries.items()}
    unanswered = list(told.open)
    if given_up or status != 0 or not told.finished:
        early = "" if given_up or status != 0 else " before it had finished"
        how = given_up or f"ended with {describe_exit(status)}{early}"
        began = bool(told.entries or told.open)
        name = unanswered.pop() if unanswered else answers.END if began else START_STEP
        steps[name] = Step(name, ended=f"the process {how}" + (f": {said}" if said else ""))
    for name in unanswered:
        steps[name] = Step(name, error=f"it gave no answer that can be read: {told.first_unreadable or 'none came'}")
    if told.unreadable:
        count = f"{told.unreadable} line{'s' * (told.unreadable > 1)}"
        error = f"{count} of what a child reported cannot be understood; {told.first_unreadable}"
        steps[answers.REPORT] = Step(answers.REPORT, error=error)
    return steps


def _most_telling(errors: bytes) -> str:
    """The lines of standard error that say where: a crash begins with its innermost call, an exception ends with it."""
    text = errors.decode("utf-8", "replace")
    told = [answers.clean(line.strip()) for line in text.splitlines() if line.strip()]
    lines = [line for line in told if not _TELLS_NOTHING.search(line)] or told
    for number, line in enumerate(lines):
        if line.startswith("Fatal Python error"):
            return " | ".join(lines[number : number + _LINES_OF_STANDARD_ERROR])
    return " | ".join(lines[-_LINES_OF_STANDARD_ERROR:])


def describe_exit(code: int) -> str:
    """An exit status in words: the signal's name where one ended the process."""
    if code >= 0:
        return f"status {code}"
    import signal

    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
