# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of nox beside each other, two at a time: most keep one core busy, with one test after the other.

Each is a nox of its own, and what it prints appears when it has ended; until then it is in .nox/logs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import nox

from tools._platform import usable_cores
from tools.affected import Session
from tools.budgets import JOBS, expected, longest_first
from tools.packages import ROOT, Package, refuse
from tools.stopwatch import Stopwatch

# Names the file that a nox of this run writes its times to, instead of the table.
TIMES = "OPENREG_CI_TIMES"
WHEELS = "wheels"
PASSED, FAILED, NOT_RUN = "passed", "FAILED", "FAILED: not run, as a wheel could not be built"
USAGE = "usage: nox -s ci [-- --list]"


def plan(sessions: Iterable[Session], packages: Mapping[str, Package]) -> str:
    """The sessions in the order in which they begin, with their budgets, and what all of them may take."""
    chosen = longest_first(sessions)
    width = max(len(session.name) for session in chosen)
    lines = [f"{session.name:<{width}}  {session.budget:5d} s" for session in chosen]
    builds = sum(package.budget.get("build", 0) for package in packages.values())
    whole = expected(chosen, packages)
    return "\n".join(
        [*lines, f"{'wheels':<{width}}  {builds:5d} s", f"{'all':<{width}}  {whole:5d} s, {JOBS} at a time"]
    )


def run_one(name: str, noxfile: Path, environments: Path, logs: Path) -> bool:
    """Runs one session in a process of its own; whether it succeeded. What it prints and its times go into `logs`."""
    (logs / f"{name}.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "nox", "--noxfile", str(noxfile), "--non-interactive"]
    command += ["--envdir", str(environments), "--session", name]
    env = {**os.environ, TIMES: str(logs / f"{name}.json")}
    with (logs / f"{name}.log").open("wb") as output:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        return subprocess.run(command, check=False, env=env, **streams).returncode == 0


def run_parallel(
    session: nox.Session,
    sessions: Iterable[Session],
    packages: Mapping[str, Package],
    stopwatch: Stopwatch,
    noxfile: Path = ROOT / "noxfile.py",
) -> None:
    """Runs sessions of `noxfile`, goes on after a failure, and fails if one failed."""
    chosen = longest_first(sessions)
    if session.posargs == ["--list"]:
        print(plan(chosen, packages))
        return
    if session.posargs:
        refuse(USAGE)
    environments = session.cache_dir.resolve().parent
    logs = environments / "logs"
    logs.mkdir(parents=True, exist_ok=True)

    def show(name: str, passed: bool) -> None:
        stopwatch.add(logs / f"{name}.json")
        print(f"\n===== {name} =====", flush=True)
        sys.stdout.buffer.write((logs / f"{name}.log").read_bytes())
        print(f"===== {name} {PASSED if passed else FAILED} =====", flush=True)

    outcomes = run_all(chosen, lambda name: run_one(name, noxfile, environments, logs), show)
    width = max(map(len, outcomes))
    print("\n".join(f"{name:<{width}}  {outcome}" for name, outcome in outcomes.items()), flush=True)
    if set(outcomes.values()) != {PASSED}:
        session.error(f"not everything passed; what each session printed is above, and in {logs}")


def run_all(
    sessions: Iterable[Session], run: Callable[[str], bool], ended: Callable[[str, bool], None]
) -> dict[str, str]:
    """Runs the wheels and the sessions, and says what became of each; `ended` is called on this thread.

    The wheels are made beside sessions that need none. A session that needs wheels waits for all of them, so that none
    writes what another reads.
    """
    waiting = [item for item in sessions if item.packages]
    first = [WHEELS] if waiting else []
    first += [item.name for item in sessions if not item.packages]
    outcomes: dict[str, str] = {}
    with ThreadPoolExecutor(max_workers=min(JOBS, usable_cores())) as pool:
        begun = {pool.submit(run, name): name for name in first}
        try:
            while begun:
                for done in wait(begun, return_when=FIRST_COMPLETED).done:
                    name = begun.pop(done)
                    ended(name, done.result())
                    outcomes[name] = PASSED if done.result() else FAILED
                    if name == WHEELS and done.result():
                        begun.update({pool.submit(run, item.name): item.name for item in waiting})
                    elif name == WHEELS:
                        outcomes.update({item.name: NOT_RUN for item in waiting})
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes
