# SPDX-License-Identifier: BSD-3-Clause
"""The lane of each subset of packages: an environment that holds it and nothing else, and the tests that matter there.

In every subset run the tests of the combination (tests/subsets), those tests of each package that are marked
`every_subset`, and each package's examples. In the subset of a sum run all tests of its parts, and in that of all its
extras those of what the extras bring; the sum's own lane, in the same environment, runs the rest.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nox

from tools._platform import SITE_PACKAGES
from tools.environments import Environment, Environments
from tools.lane import PYTEST, example_scripts, holds
from tools.packages import ROOT, Package, refuse
from tools.subsets import Subset, choose, subsets
from tools.wheelhouse import Wheelhouse

COMBINATION_TESTS = ROOT / "tests" / "subsets"
MARK = "every_subset"


def run_subsets(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Runs the lanes of the subsets named in the session's arguments, or all; `--list` prints them."""
    if "--list" in session.posargs:
        for subset in subsets(wheelhouse.packages).values():
            print(f"{subset.name:<28} pip install {' '.join(map(shlex.quote, subset.requested))}")
        return
    try:
        chosen = choose(session.posargs, wheelhouse.packages)
    except ValueError as error:
        refuse(f"subsets: {error}")
    needed = [name for subset in chosen for name in subset.members]
    environments = Environments(session, wheelhouse, needed)
    for subset in chosen:
        run_subset(session, environments, wheelhouse.packages, subset)


def run_subset(
    session: nox.Session, environments: Environments, packages: Mapping[str, Package], subset: Subset
) -> None:
    """One lane."""
    session.log(f"subset {subset.name}")
    environment = environments.create(subset.name, subset.requested)
    prove(session, environment, environments, subset)
    environment.run("combination", *PYTEST, str(COMBINATION_TESTS))
    for name in subset.members:
        tests = str(packages[name].folder / "tests")
        chosen = () if name in subset.thorough else ("-m", MARK)
        environment.run(f"{name}: pytest", *PYTEST, *chosen, tests)
        for path in example_scripts(name):
            environment.run(path.name, str(path))


def prove(session: nox.Session, environment: Environment, environments: Environments, subset: Subset) -> None:
    """Fails the session unless the environment holds the wheels of the subset, file by file, and no other of ours.

    One more distribution, put there for a moment, has to be noticed here and by the tests of the combination.
    """
    wheels = {name: environments.wheels[name] for name in subset.members}
    if not holds(environment.folder, wheels):
        session.error(f"the environment of {subset.name} does not hold exactly {', '.join(subset.members)}")
    only = ("-k", "holds_what_was_asked_for_and_nothing_else", str(COMBINATION_TESTS))
    environment.run("nothing else", *PYTEST, *only)
    with one_more_distribution(environment.folder):
        if holds(environment.folder, wheels) or environment.passes("one more distribution", *PYTEST, *only):
            session.error(f"one more distribution in the environment of {subset.name} goes unnoticed")


@contextmanager
def one_more_distribution(environment: Path) -> Iterator[None]:
    """Makes an environment look as if it held a package that nobody asked for."""
    (site,) = environment.glob(SITE_PACKAGES)
    info = site / "openreg_intruder-1.0.dist-info"
    info.mkdir()
    try:
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: openreg-intruder\nVersion: 1.0\n", "utf-8")
        (info / "RECORD").write_text("", "utf-8")
        yield
    finally:
        shutil.rmtree(info)
