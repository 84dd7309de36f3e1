# SPDX-License-Identifier: BSD-3-Clause
"""Seeded schedules make the races of programs with two ranks visible, and the same seed reproduces them."""

from collections.abc import Callable

import pytest
import races
from ranks import Ranks

NAMES = {program.__name__ for program in races.PROGRAMS}


def shown_by(own: Callable[..., Ranks], seed: int) -> dict[str, list[bool]]:
    """By program with a race: whether each rank saw wrong numbers. Those without show none."""
    # A schedule that waits longer for a thread than a busy machine stops one. Otherwise the order could be another one.
    ranks = own(2, OPENREG_SCHEDULE_SEED=str(seed), OPENREG_SCHEDULE_TIMEOUT="120")
    told = ranks.run(races.all_programs)
    ranks.kill()
    for name in NAMES:
        assert not any(one[name][1] for one in told), f"seed {seed} shows a race of {name}, where there is none"
    return {name: [one[name][0] for one in told] for name in NAMES}


def test_seeds_show_races_and_repeat_them(own):
    left = set(NAMES)
    for seed in range(1, 50):
        shown = shown_by(own, seed)
        left -= {name for name in NAMES if any(shown[name])}
        if not left:
            break
    assert not left
    assert shown_by(own, seed) == shown


@pytest.mark.endurance
def test_5_percent_of_300_seeds_show_each_race(own):
    seeds = range(1000, 1300)
    counts = dict.fromkeys(sorted(NAMES), 0)
    for seed in seeds:
        shown = shown_by(own, seed)
        for name in NAMES:
            counts[name] += any(shown[name])
        assert shown_by(own, seed) == shown, f"seed {seed} shows something else the second time"
    print(f"of {len(seeds)} seeds show it: {counts}")
    assert min(counts.values()) >= len(seeds) * 0.05, counts
