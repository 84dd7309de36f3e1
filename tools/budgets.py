# SPDX-License-Identifier: BSD-3-Clause
"""What a lane may take: seconds on two cores that have nothing else to do but one more lane, from an empty checkout.

A package declares its budget in its pyproject.toml, `build` and `lane` under `[tool.openreg.budget]`; any other session
where noxfile.py lists it. A run that takes longer says so at its end and passes: on a busy machine everything takes
longer. The budgets of what `.ci/run` runs have to fit into LIMIT, with room for fourteen packages
(tests/test_noxfile.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tools.affected import Session
from tools.packages import Package

LIMIT = 45 * 60
JOBS = 2  # sessions at a time
# Options of nox by which a run says itself what it does: which sessions, or how many at a time.
_CHOOSING = ("-s", "-e", "-k", "-t", "-l", "-j", "--session", "--keyword", "--tag", "--list", "--parallel")


def jobs(arguments: Sequence[str], cores: int) -> int:
    """How many sessions nox runs at a time with these arguments.

    Several where it runs all of them, as most keep one core busy with one test after the other. One where a session is
    named, which then shows what it does while it does it.
    """
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return 1 if any(option.startswith(_CHOOSING) for option in options) else min(JOBS, cores)


def budgets(sessions: Iterable[Session], packages: Mapping[str, Package]) -> dict[str, int]:
    """Seconds by session, and by the step that builds a package's wheel; nothing for what declares none."""
    found = {f"build {name}": package.budget.get("build", 0) for name, package in packages.items()}
    found.update({session.name: session.budget for session in sessions})
    return {name: seconds for name, seconds in found.items() if seconds}


def expected(sessions: Iterable[Session], packages: Mapping[str, Package], jobs: int = JOBS) -> int:
    """Seconds that a run takes whose lanes use up their budgets, so many at a time, the wheels and then `in_order`."""
    ends = [0] * jobs

    def run(seconds: int, not_before: int = 0) -> int:
        first = ends.index(min(ends))
        ends[first] = max(ends[first], not_before) + seconds
        return ends[first]

    built = run(sum(package.budget.get("build", 0) for package in packages.values()))
    for session in in_order(sessions):
        run(session.budget, built if session.packages else 0)
    return max(ends)


def in_order(sessions: Iterable[Session]) -> list[Session]:
    """The order in which sessions that run beside each other are begun.

    Those that need no wheels come first, as they run beside the builds; of each kind the longest ones, so that none is
    left alone at the end.
    """
    return sorted(sessions, key=lambda session: (bool(session.packages), -session.budget))
