# SPDX-License-Identifier: BSD-3-Clause
"""A collective runs after earlier tasks of its stream and before later ones, and blocks no other stream."""

import ordering
import pytest

NAMES = [call.__name__ for call in ordering.CALLS]


@pytest.mark.parametrize("call", ordering.CALLS, ids=NAMES)
def test_in_order(two, call):
    two.run(call, call.__name__)


@pytest.mark.parametrize("call", [ordering.work_before, ordering.threads, ordering.both_devices])
def test_in_order_of(two, call):
    two.run(call)


def test_with_poison(own):
    ranks = own(2, OPENREG_POISON="1")
    for call in ordering.CALLS:
        ranks.run(call, call.__name__)
    assert ranks.end() == [0, 0]


def test_with_launches_that_block(own):
    ranks = own(2, OPENREG_LAUNCH_BLOCKING="1")
    for call in (ordering.work_before, ordering.threads, ordering.both_devices):
        ranks.run(call)
    assert ranks.end() == [0, 0]


def test_a_thread_that_blocks_in_a_call_does_not_stop_the_others(own):
    ranks = own(2, OPENREG_LAUNCH_BLOCKING="1")
    ranks.run(ordering.thread_that_blocks, "blocks")
    assert ranks.end() == [0, 0]


@pytest.mark.parametrize("seed", [1, 2])
def test_with_a_seed(own, seed):
    ranks = own(2, OPENREG_SCHEDULE_SEED=str(seed))
    for call in (ordering.work_before, ordering.both_devices):
        ranks.run(call)
    ranks.run(ordering.freed_while_in_use, "freed")
    assert ranks.run(ordering.seeded, True) == [[3.0] * 8] * 2
    assert ranks.end() == [0, 0]


def test_a_seed_shows_a_wait_that_was_forgotten_and_repeats_it(own):
    seen = []
    for _ in range(2):
        ranks = own(2, OPENREG_SCHEDULE_SEED="3", OPENREG_SCHEDULE_TIMEOUT="120")  # as in test_races.py
        seen.append([ranks.run(ordering.seeded, False)[0] for _ in range(20)])
        assert [ranks.run(ordering.seeded, True)[0] for _ in range(20)] == [[3.0] * 8] * 20
        ranks.kill()
    assert seen[0] == seen[1]
    assert [1.0] * 8 in seen[0]  # read before the sum was there
