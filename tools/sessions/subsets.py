# SPDX-License-Identifier: BSD-3-Clause
"""Derives the sets of packages that a user may install from what the packages declare, and tests each set.

A package with an entry point in the group `openreg.plugins` is a *plug-in*. A *loader* has an entry point in
`torch.backends` and loads the plug-ins. A package with neither that depends on a loader, such as openreg-meta, is a
*sum*.

The plug-ins of a sum are combined in every way that their dependencies allow, each combination with and without a
loader. Any other package is installed with only what it needs, with and without a loader, and with each sum, as an
extra of it (`meta[x]`) if it is one. All extras of a sum together are one more subset. So a further package adds three
subsets, and does not double their number. A set without any plug-in has nothing to load, so it is not combined with a
loader.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import nox

from tools.packages import ROOT, Package, closure, refuse, requirement_name, siblings
from tools.sessions.environments import Environments, holds
from tools.sessions.package_session import PYTEST, example_scripts, tests_of
from tools.sessions.wheelhouse import Wheelhouse

PLUGINS = "openreg.plugins"
LOADERS = "torch.backends"
ALL = "all"  # the extra that installs the packages of all other extras


@dataclass(frozen=True)
class Subset:
    """One set of packages: the arguments of pip, and all packages of this repository that pip installs for them."""

    name: str
    requested: tuple[str, ...]  # such as `openreg-meta` or `openreg-meta[x]`
    members: tuple[str, ...]
    thorough: tuple[str, ...] = ()  # members whose tests all run here, not only those that depend on the subset


def is_sum(package: Package, packages: Mapping[str, Package]) -> bool:
    """Returns True if a package only installs others, among them a loader."""
    needed = siblings(package.requirements, packages)
    loads = any(LOADERS in packages[name].entry_points for name in needed)
    return loads and not {PLUGINS, LOADERS} & set(package.entry_points)


def make_subset(names: Iterable[str], packages: Mapping[str, Package]) -> Subset:
    """Returns the subset that contains `names` and all that they need."""
    needed = {item for name in names for item in closure(name, packages)}
    members = tuple(name for name in packages if name in needed)
    brought = {item for name in members for item in closure(name, packages) if item != name}
    requested = tuple(name for name in members if name not in brought)
    # The name of the subset consists of the requested packages and of plug-ins, which a sum in it replaces.
    summed = any(is_sum(packages[name], packages) for name in members)
    counted = [name for name in members if name in requested or (not summed and PLUGINS in packages[name].entry_points)]
    shown = sorted(counted, key=lambda name: LOADERS in packages[name].entry_points)
    return Subset("+".join(packages[name].short_name for name in shown), requested, members)


def extras_of(name: str, packages: Mapping[str, Package]) -> dict[str, list[str]]:
    """Returns the extras of a package, except `all`, with the packages of this repository that each installs.

    Leaves out extras that install none.
    """
    found = {extra: siblings(items, packages) for extra, items in packages[name].extras.items() if extra != ALL}
    return {extra: brought for extra, brought in found.items() if brought}


def subset_of_extra(name: str, extra: str, packages: Mapping[str, Package]) -> Subset:
    """Returns the subset of a sum with one of its extras."""
    brought = siblings(packages[name].extras[extra], packages)
    members = make_subset([name, *brought], packages).members
    last = extra == ALL or len(extras_of(name, packages)) == 1
    thorough = tuple(item for item in members if item not in closure(name, packages)) if last else ()
    return Subset(f"{packages[name].short_name}[{extra}]", (f"{name}[{extra}]",), members, thorough)


def combined(parts: list[str], packages: Mapping[str, Package]) -> Iterator[tuple[str, ...]]:
    """Yields every set of these packages that contains what its members need, smaller sets first."""
    for size in range(1, len(parts) + 1):
        for chosen in combinations(parts, size):
            if all(set(closure(name, packages)) & set(parts) <= set(chosen) for name in chosen):
                yield chosen


def subsets(packages: Mapping[str, Package]) -> dict[str, Subset]:
    """Returns every useful subset by its name."""
    loaders = [name for name, package in packages.items() if LOADERS in package.entry_points]
    sums = [name for name, package in packages.items() if is_sum(package, packages)]
    # The plug-ins that a sum brings; all plug-ins where there is no sum.
    summed = {item for name in sums for item in closure(name, packages)}
    plugins = [name for name, package in packages.items() if PLUGINS in package.entry_points]
    parts = [name for name in plugins if name in summed or not sums]
    others = [name for name in packages if name not in {*loaders, *sums, *parts}]
    found = []
    for chosen in [*combined(parts, packages), *((name,) for name in others)]:
        alone = make_subset(chosen, packages)
        found.append(alone)
        if any(PLUGINS in packages[name].entry_points for name in alone.members):
            found += [make_subset([*chosen, loader], packages) for loader in loaders]
    for name in sums:
        extras = extras_of(name, packages)
        whole = make_subset([name], packages)
        found.append(replace(whole, thorough=tuple(item for item in whole.members if item != name)))
        joined = {*whole.members, *(item for brought in extras.values() for item in brought)}
        found += [make_subset([name, other], packages) for other in others if other not in joined]
        found += [subset_of_extra(name, extra, packages) for extra in [*extras, *([ALL] if len(extras) > 1 else [])]]
    return {subset.name: subset for subset in found}


def choose(names: Iterable[str], packages: Mapping[str, Package]) -> list[Subset]:
    """Returns the subsets with these names, whose parts may be in any order; all subsets without names.

    Raises ValueError, which lists all names, for an unknown one.
    """
    known = subsets(packages)
    by_parts = {frozenset(name.split("+")): subset for name, subset in known.items()}
    chosen = []
    for name in names:
        subset = by_parts.get(frozenset(name.split("+")))
        if subset is None:
            raise ValueError(f"no subset is called {name!r}; there are: {', '.join(known)}")
        chosen.append(subset)
    return chosen or list(known.values())


def installed(subset: Subset, packages: Mapping[str, Package]) -> list[str]:
    """Returns the members, and the packages of this repository that the tests of the requested ones need."""
    tests = [item for name in subset.requested for item in packages[requirement_name(name)].extras.get("test", ())]
    needed = {item for name in siblings(tests, packages) for item in closure(name, packages)}
    return [name for name in packages if name in {*subset.members, *needed}]


COMBINATION_TESTS = ROOT / "tests" / "subsets"
MARK = "every_subset"


def marked_tests(package: Package) -> list[str]:
    """Returns the files of a package's tests that depend on which packages are installed.

    The other files may import what only the package's own session installs, so pytest must not even collect them here.
    """
    folder, common = map(Path, tests_of(package))
    files = [*sorted(folder.rglob("test_*.py")), common]
    return [str(path) for path in files if MARK in path.read_text("utf-8")]


def run_subsets(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Runs the tests of the subsets that the session's arguments name, or of all; `--list` prints them instead."""
    if "--list" in session.posargs:
        for subset in subsets(wheelhouse.packages).values():
            print(f"{subset.name:<28} pip install {' '.join(map(shlex.quote, subset.requested))}")
        return
    try:
        chosen = choose(session.posargs, wheelhouse.packages)
    except ValueError as error:
        refuse(f"subsets: {error}")
    needed = dict.fromkeys(name for subset in chosen for name in installed(subset, wheelhouse.packages))
    environments = Environments(session, wheelhouse, needed)
    for subset in chosen:
        run_subset(session, environments, wheelhouse.packages, subset)


def run_subset(
    session: nox.Session, environments: Environments, packages: Mapping[str, Package], subset: Subset
) -> None:
    """Runs the tests of one subset. Fails unless its environment contains exactly the files of the subset's wheels."""
    session.log(f"subset {subset.name}")
    environment = environments.create(subset.name, subset.requested)
    present = installed(subset, packages)
    if not holds(environment.folder, {name: environments.wheels[name] for name in present}):
        session.error(f"the environment of {subset.name} does not hold exactly {', '.join(present)}")
    environment.run("combination", *PYTEST, str(COMBINATION_TESTS))
    for name in subset.members:
        package = packages[name]
        chosen = tests_of(package) if name in subset.thorough else ("-m", MARK, *marked_tests(package))
        environment.run(f"{name}: pytest", *PYTEST, *chosen)
        for path in example_scripts(name):
            environment.run(path.name, str(path))
