# SPDX-License-Identifier: BSD-3-Clause
"""Reads the marks ``schedules``, ``poison``, ``faults`` and ``device_settings`` of tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

import pytest

from .usage import shown

# Settings of openreg. A seed determines the order of tasks of different streams. Poison is a byte pattern, NaN as a
# number, with which memory is filled when it is allocated and when it is released.
SEED = "OPENREG_SCHEDULE_SEED"
POISON = "OPENREG_POISON"

DESCRIPTIONS = (
    "schedules(seeds=200): run the test under this many orders of streams, each in a process with poison (openreg)",
    "poison: run the test with memory that is filled with NaN when it is allocated and when it is released (openreg)",
    'faults("alloc:1", ...): make these allocations, copies or launches of the test fail (openreg)',
    'device_settings(OPENREG_DEVICE_MEMORY="64MiB", ...): run the test in a process with these environment variables',
)
_SEEDS = 200  # the default of the mark schedules
_FAULT = re.compile(r"(alloc|copy|launch|lose):[1-9]\d*(@\d+)?")


@dataclass(frozen=True)
class Requirements:
    """The settings, faults and seeds that the marks of a test require for its run."""

    seeds: int  # the number of orders of streams; 0: the usual order only
    faults: str  # in the syntax of torch.openreg.inject_faults
    settings: dict[str, str]  # environment variables

    @staticmethod
    def of(item: pytest.Item) -> Requirements:
        """Returns the requirements of a test's marks. Raises UsageError for a mark with invalid arguments."""
        settings = _device_settings(item)
        if _poison(item):
            settings.setdefault(POISON, "1")
        return Requirements(_schedules(item), faults(item), settings)


def faults(item: pytest.Item) -> str:
    """Returns the faults of a test's mark in the syntax of ``torch.openreg.inject_faults``; empty without the mark.

    Raises UsageError for a mark with invalid arguments.
    """
    mark = item.get_closest_marker("faults")
    if mark is None:
        return ""
    given = ["" if not isinstance(argument, str) else argument for argument in mark.args]
    each = [fault.strip() for argument in given for fault in argument.split(",")]
    if mark.kwargs or not each or not all(map(_FAULT.fullmatch, each)):
        accepted = "KIND:N or KIND:N@DEVICE with KIND one of alloc, copy, launch, lose, N from 1 on"
        raise _invalid(item, mark, f'{accepted}, such as faults("alloc:1", "copy:3@1")')
    return ",".join(each)


def _schedules(item: pytest.Item) -> int:
    """Returns the number of seeds of the mark ``schedules``; 0 without the mark."""
    mark = item.get_closest_marker("schedules")
    if mark is None:
        return 0
    named = mark.kwargs.keys() <= {"seeds"} and len(mark.args) + len(mark.kwargs) <= 1
    seeds = mark.kwargs.get("seeds", mark.args[0] if mark.args else _SEEDS)
    if not named or type(seeds) is not int or seeds < 1:
        raise _invalid(item, mark, "a number of seeds from 1 on, such as schedules(seeds=200)")
    return seeds


def _poison(item: pytest.Item) -> bool:
    """Returns True if the test has the mark ``poison``."""
    mark = item.get_closest_marker("poison")
    if mark is not None and (mark.args or mark.kwargs):
        raise _invalid(item, mark, "no argument")
    return mark is not None


def _device_settings(item: pytest.Item) -> dict[str, str]:
    """Returns the environment variables of all marks ``device_settings`` of the test."""
    settings: dict[str, str] = {}
    for mark in item.iter_markers("device_settings"):  # the closest mark first, which takes precedence
        values = mark.kwargs.values()
        if mark.args or not values or not all(isinstance(value, (str, int)) for value in values):
            accepted = 'environment variables, such as device_settings(OPENREG_DEVICE_MEMORY="64MiB")'
            raise _invalid(item, mark, accepted)
        for name in mark.kwargs:
            _check_name(item, mark, name)
        settings = {name: _text(value) for name, value in mark.kwargs.items()} | settings
    return settings


def _text(value: str | int) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def prefixes() -> list[str]:
    """Returns the prefixes of the names of all settings of the installed backends, such as "OPENREG_"."""
    return list(_declared())


def _check_name(item: pytest.Item, mark: pytest.Mark, name: str) -> None:
    """Raises UsageError for an unknown setting of an installed backend, because it would have no effect."""
    for prefix, names in _declared().items():
        if name.startswith(prefix) and name not in names:
            close = get_close_matches(name, names, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise _invalid(item, mark, f"settings that the installed backend reads, and {name} is not one{hint}")


@cache
def _declared() -> dict[str, frozenset[str]]:
    """Returns the settings of the installed backends, by the prefix of their names."""
    from openreg_doctor.backend import declared

    backends, _ = declared()
    return {each.prefix: frozenset(setting.name for setting in each.settings) for each in backends if each.prefix}


def _invalid(item: pytest.Item, mark: pytest.Mark, accepted: str) -> pytest.UsageError:
    """Returns the error for a mark with invalid arguments. ``accepted`` describes the valid ones."""
    return pytest.UsageError(f"{item.nodeid}: the mark {shown(mark)} is not accepted; it takes {accepted}")
