# SPDX-License-Identifier: BSD-3-Clause
"""What the marks ``schedules``, ``poison``, ``faults`` and ``device_settings`` of a test ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

import pytest

SEED = "OPENREG_SCHEDULE_SEED"
POISON = "OPENREG_POISON"

DESCRIPTIONS = (
    "schedules(seeds=200): run the test under so many orders of streams, each in a process with poison (openreg)",
    "poison: run the test with memory that is filled with NaN when it is allocated and when it is released (openreg)",
    'faults("alloc:1", ...): let these allocations, copies or launches of the test fail (openreg)',
    'device_settings(OPENREG_DEVICE_MEMORY="64MiB", ...): run the test in a process with these environment variables',
)
_SEEDS = 200  # of a mark that gives no number
_FAULT = re.compile(r"(alloc|copy|launch|lose):[1-9]\d*(@\d+)?")


@dataclass(frozen=True)
class Asked:
    """What all marks of a test ask for together."""

    seeds: int  # 0: no other order of streams than usual
    faults: str  # as torch.openreg.inject_faults takes them
    settings: dict[str, str]  # environment variables

    @staticmethod
    def by(item: pytest.Item) -> Asked:
        """Raises UsageError for arguments that are not accepted."""
        settings = _device_settings(item)
        if _poison(item):
            settings.setdefault(POISON, "1")
        return Asked(_schedules(item), faults(item), settings)


def faults(item: pytest.Item) -> str:
    """The faults that the test asks for; empty for none."""
    mark = item.get_closest_marker("faults")
    if mark is None:
        return ""
    given = ["" if not isinstance(argument, str) else argument for argument in mark.args]
    each = [fault.strip() for argument in given for fault in argument.split(",")]
    if mark.kwargs or not each or not all(map(_FAULT.fullmatch, each)):
        accepted = "KIND:N or KIND:N@DEVICE with KIND one of alloc, copy, launch, lose, N from 1 on"
        raise _refusal(item, mark, f'{accepted}, such as faults("alloc:1", "copy:3@1")')
    return ",".join(each)


def _schedules(item: pytest.Item) -> int:
    mark = item.get_closest_marker("schedules")
    if mark is None:
        return 0
    named = mark.kwargs.keys() <= {"seeds"} and len(mark.args) + len(mark.kwargs) <= 1
    seeds = mark.kwargs.get("seeds", mark.args[0] if mark.args else _SEEDS)
    if not named or type(seeds) is not int or seeds < 1:
        raise _refusal(item, mark, "a number of seeds from 1 on, such as schedules(seeds=200)")
    return seeds


def _poison(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("poison")
    if mark is not None and (mark.args or mark.kwargs):
        raise _refusal(item, mark, "no argument")
    return mark is not None


def _device_settings(item: pytest.Item) -> dict[str, str]:
    settings: dict[str, str] = {}
    for mark in item.iter_markers("device_settings"):  # the closest first
        values = mark.kwargs.values()
        if mark.args or not values or not all(isinstance(value, (str, int)) for value in values):
            accepted = 'environment variables, such as device_settings(OPENREG_DEVICE_MEMORY="64MiB")'
            raise _refusal(item, mark, accepted)
        for name in mark.kwargs:
            _check_name(item, mark, name)
        settings = {name: _text(value) for name, value in mark.kwargs.items()} | settings
    return settings


def _text(value: str | int) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def prefixes() -> list[str]:
    """How the names of the settings of the installed backends begin."""
    return list(_declared())


def _check_name(item: pytest.Item, mark: pytest.Mark, name: str) -> None:
    """A misspelt setting of a backend would have no effect."""
    for prefix, names in _declared().items():
        if name.startswith(prefix) and name not in names:
            close = get_close_matches(name, names, 1)
            hint = f"; is {close[0]} meant?" if close else ""
            raise _refusal(item, mark, f"what the installed backend reads, and {name} is not among it{hint}")


@cache
def _declared() -> dict[str, frozenset[str]]:
    """The settings of the installed backends, by the prefix of their names."""
    from openreg_doctor.backend import declared

    backends, _ = declared()
    return {each.prefix: frozenset(setting.name for setting in each.settings) for each in backends if each.prefix}


def _refusal(item: pytest.Item, mark: pytest.Mark, accepted: str) -> pytest.UsageError:
    given = ", ".join([*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())])
    return pytest.UsageError(f"{item.nodeid}: the mark {mark.name}({given}) is not accepted; it takes {accepted}")
