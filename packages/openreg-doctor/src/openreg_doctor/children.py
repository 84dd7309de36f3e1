# SPDX-License-Identifier: BSD-3-Clause
"""Runs what may fail, crash or hang in child processes, and gathers what became of each step.

A child appends a line to a file before and after each step. So the step that ended the process is known, and another
child goes on behind it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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
    """Runs all steps of the request. A step that gives no sign for ``patience`` seconds is ended, with its process."""
    outcome = Outcome()
    for _ in range(_MOST_CRASHES):
        known = {name: step.done for name, step in outcome.steps.items() if name.startswith(request.PROBE)}
        steps = _run_once(request, known, environment, patience)
        outcome.steps.update(steps)
        ended = next((step for step in steps.values() if step.ended), None)
        if ended is None or not ended.name.startswith(request.PROBE):
            return outcome
    return outcome


def _run_once(
    request: Request, known: Mapping[str, bool], environment: Mapping[str, str], patience: float
) -> dict[str, Step]:
    folder = str(Path(__file__).parent)
    python = [sys.executable, *_flags(), "-X", "faulthandler"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        report, errors = Path(scratch, "report"), Path(scratch, "errors")
        report.touch()
        with errors.open("wb") as stream:
            arguments = [folder, str(report), json.dumps(asdict(request)), json.dumps(known)]
            try:
                child = subprocess.Popen(
                    [*python, "-c", _START, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stream,
                    env=dict(environment),
                )
            except OSError as error:
                return {START_STEP: Step(START_STEP, error=f"{type(error).__name__}: {error}")}
            try:
                in_time = _wait(child, report, patience)
            finally:
                _end(child)
        how = f"ended with {describe_exit(child.returncode)}" if in_time else f"gave no answer within {patience:g} s"
        return _read(report, how, in_time and child.returncode == 0, errors.read_text("utf-8", "replace"))


def _flags() -> list[str]:
    """What decides where Python looks for modules, as this process was started: a child has to find the same ones."""
    return [flag for name, flag in _PATH_FLAGS.items() if getattr(sys.flags, name, False)]


def _wait(child: subprocess.Popen[bytes], report: Path, patience: float) -> bool:
    """Waits for the end; False if the report did not grow for too long."""
    size, since = -1, time.monotonic()
    while child.poll() is None:
        if report.stat().st_size != size:
            size, since = report.stat().st_size, time.monotonic()
        elif time.monotonic() - since > patience:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _end(child: subprocess.Popen[bytes]) -> None:
    """Leaves no process behind, also where the user interrupts."""
    if child.poll() is None:
        child.kill()
        child.wait()


def _read(report: Path, how: str, ended_well: bool, errors: str) -> dict[str, Step]:
    steps: dict[str, Step] = {}
    begun = START_STEP
    for line in report.read_text("utf-8").splitlines():
        entry = json.loads(line)
        if "begin" in entry:
            begun = entry["begin"]
        else:
            steps[entry["name"]] = Step(**entry)
            begun = ""
    if not ended_well:
        name = begun or "end of the process"
        said = _most_telling(errors)
        steps[name] = Step(name, ended=f"the process {how}" + (f": {said}" if said else ""))
    return steps


def _most_telling(errors: str) -> str:
    """The lines of standard error that say where: a crash begins with its innermost call, an exception ends with it."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
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
